"""Conversations as GraphML, for NetworkX, Gephi, yEd and other graph software."""

from __future__ import annotations

import io
from collections.abc import Sequence

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import visible
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode

_NOT_IN_XML = str.maketrans({"\ufffe": "\\ufffe", "\uffff": "\\uffff"})


def to_graphml(nodes: Sequence[ConversationNode]) -> str:
    """Write a conversation as a directed graph with edges from parent to child.

    Args:
        nodes: All nodes of one conversation, in any order and of any state.

    Returns:
        GraphML. A node has the attributes `role`, `text`, `time` (ISO 8601), `state` ("live", "superseded" or
        "aside") and, unless it is a root, `parent`. Control characters of texts are written as escapes.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.

    Example:
        >>> import networkx
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi!"), 1)]
        >>> read = networkx.parse_graphml(to_graphml(nodes), node_type=int)
        >>> list(read.edges), read.nodes[2]["role"], read.nodes[2]["text"]
        ([(1, 2)], 'assistant', 'Hi!')
    """
    import networkx

    tree = graph.to_graph(nodes)
    for _, values in tree.nodes(data=True):
        node: ConversationNode = values.pop("node")
        values |= {
            "role": _as_text(role_of(node.message)),
            "text": _as_text(text_of(node.message)),
            "time": node.timestamp.isoformat(),
            "state": node.state.label,
        }
        if node.parent_id is not None:
            values["parent"] = node.parent_id
    file = io.BytesIO()
    # `generate_graphml` is not used, since it splits texts at line ends that are not line ends of XML.
    networkx.write_graphml_xml(tree, file)
    return file.getvalue().decode()


def _as_text(text: str) -> str:
    return visible(text).translate(_NOT_IN_XML)
