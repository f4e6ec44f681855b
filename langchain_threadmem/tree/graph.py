"""Graph algorithms over nodes: paths, leaves, threads and validation.

The argument `nodes` is all nodes of a conversation, in any order and of any state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from langchain_threadmem.common.type_variables import K
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.errors import InputError, InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

if TYPE_CHECKING:
    import networkx

IdT = TypeVar("IdT", int, str)


def to_graph(nodes: Sequence[ConversationNode]) -> networkx.DiGraph[int]:
    """Build the NetworkX graph of the node ids of a conversation with edges from parent to child.

    The attribute `"node"` of each id is its `ConversationNode`. The cost is about a kilobyte and a few
    microseconds per node.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest; see `validate`.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi!"), 1)]
        >>> graph = to_graph(nodes)
        >>> list(graph.edges), graph.nodes[2]["node"].message.text
        ([(1, 2)], 'Hi!')
    """
    # The import of NetworkX takes longer than the import of this package.
    import networkx

    validate(nodes)
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from((node.id, {"node": node}) for node in nodes)
    graph.add_edges_from((node.parent_id, node.id) for node in nodes if node.parent_id is not None)
    return graph


def path(nodes_by_id: Mapping[int, ConversationNode], node_id: int) -> list[ConversationNode]:
    """Return the nodes from the root to a node, root first; the cost is linear in their number.

    Args:
        nodes_by_id: The node and its ancestors; more nodes are allowed.
        node_id: The last node of the path.

    Raises:
        NodeNotFoundError: No node has this id.
        InvalidGraphStateError: An ancestor is missing, or the path is a circle.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi!"), 1)]
        >>> [node.id for node in path({node.id: node for node in nodes}, 2)]
        [1, 2]
    """
    return list(_upwards(nodes_by_id, node_id))[::-1]


def traverse(nodes_by_id: Mapping[int, ConversationNode], node_id: int, depth: int) -> list[ConversationNode]:
    """Return the last `depth` nodes of the path to a node.

    `depth` includes the node itself; the `context_depth` of recall counts ancestors only.

    Args:
        nodes_by_id: The node and the ancestors to return; more nodes are allowed.
        node_id: The last node of the path.
        depth: The maximum number of nodes, 0 or more.

    Returns:
        The nodes, oldest first; an empty list if no node has this id. The cost is linear in `depth`.

    Raises:
        InputError: `depth` is negative.
        InvalidGraphStateError: An ancestor is missing, or the path is a circle.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> nodes = {n: ConversationNode(n, HumanMessage("Hello"), n - 1 or None) for n in (1, 2, 3, 4)}
        >>> [node.id for node in traverse(nodes, 4, depth=3)]
        [2, 3, 4]
    """
    if depth < 0:
        raise InputError(f"depth must be 0 or more, not {depth!r}; pass 1 for the node alone")
    if node_id not in nodes_by_id:
        return []
    return list(islice(_upwards(nodes_by_id, node_id), depth))[::-1]


def living(nodes: Sequence[ConversationNode]) -> list[ConversationNode]:
    """Select the nodes of threads: live nodes and their ancestors, ordered by id.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> old = ConversationNode(1, HumanMessage("Helo"), state=State.SUPERSEDED)
        >>> [node.id for node in living([old, ConversationNode(2, HumanMessage("Hello"))])]
        [2]
    """
    above = _above_live(nodes)
    return _by_id(node for node in nodes if node.state == State.LIVE or node.id in above)


def leaves(nodes: Sequence[ConversationNode]) -> list[ConversationNode]:
    """Return the live nodes without a live descendant, ordered by id.

    Raises:
        InvalidGraphStateError: A parent is missing.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello"))]
        >>> nodes += [ConversationNode(2, AIMessage("Hi!"), 1), ConversationNode(3, AIMessage("Hey!"), 1)]
        >>> [node.id for node in leaves(nodes)]
        [2, 3]
    """
    inner = _above_live(nodes)
    return _by_id(node for node in nodes if node.state == State.LIVE and node.id not in inner)


def threads(nodes: Sequence[ConversationNode]) -> list[list[ConversationNode]]:
    """Return the threads of a conversation: the path from the root to each leaf.

    Threads are ordered by the id of their leaf. A system message alone is not a thread. The cost is linear in
    the number of nodes and in the total length of the threads.

    Raises:
        InvalidGraphStateError: A parent is missing.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello"))]
        >>> nodes += [ConversationNode(2, AIMessage("Hi!"), 1), ConversationNode(3, AIMessage("Hey!"), 1)]
        >>> [[node.id for node in thread] for thread in threads(nodes)]
        [[1, 2], [1, 3]]
    """
    nodes_by_id = {node.id: node for node in nodes}
    paths = (path(nodes_by_id, leaf.id) for leaf in leaves(nodes))
    return [thread for thread in paths if len(thread) > 1 or thread[0].message.type != "system"]


def validate(nodes: Sequence[ConversationNode]) -> None:
    """Check that nodes form a forest.

    Raises:
        InvalidGraphStateError: Two nodes share an id, a parent is missing, or nodes form a circle; the
            message names the ids.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> validate([ConversationNode(1, HumanMessage("Hello"), parent_id=7)])
        Traceback (most recent call last):
        langchain_threadmem.errors.InvalidGraphStateError: node 1 has the parent 7, which is missing; ...
    """
    counts = Counter(node.id for node in nodes)
    if len(counts) < len(nodes):
        repeated = [node_id for node_id, count in counts.items() if count > 1]
        raise InvalidGraphStateError(f"node ids used more than once: {repeated!r}; give each node its own id")
    for node in nodes:
        if node.parent_id is not None and node.parent_id not in counts:
            raise _missing_parent(node)
    orderly({node.id: node.parent_id for node in nodes})


def orderly(parents: Mapping[int, int | None]) -> list[int]:
    """Order nodes in preorder, with roots and children by id: the nodes of a thread are next to each other.

    Args:
        parents: The parent of each node, `None` for a root; each parent is a node.

    Raises:
        InvalidGraphStateError: Nodes form a circle.

    Example:
        >>> orderly({1: None, 2: 1, 3: 1, 4: 2, 5: 3})
        [1, 2, 4, 3, 5]
    """
    children: dict[int | None, list[int]] = defaultdict(list)
    for node_id in sorted(parents, reverse=True):
        children[parents[node_id]].append(node_id)
    order: list[int] = []
    waiting = children[None]
    while waiting:
        order.append(waiting.pop())
        waiting += children[order[-1]]
    if len(order) < len(parents):
        raise _circle(parents.keys() - set(order))
    return order


def _upwards(nodes_by_id: Mapping[int, ConversationNode], node_id: int) -> Iterator[ConversationNode]:
    """A node and its ancestors up to the root."""
    if node_id not in nodes_by_id:
        raise NodeNotFoundError(f"no node {node_id!r} in this conversation; `threads` returns the nodes")
    node = nodes_by_id[node_id]
    yield node
    steps = 1
    while node.parent_id is not None:
        if node.parent_id not in nodes_by_id:
            raise _missing_parent(node)
        if steps == len(nodes_by_id):
            raise _circle({node_id})
        node = nodes_by_id[node.parent_id]
        yield node
        steps += 1


def _above_live(nodes: Sequence[ConversationNode]) -> set[int]:
    """The ids of the ancestors of live nodes."""
    nodes_by_id = {node.id: node for node in nodes}
    above: set[int] = set()
    for node in nodes:
        if node.state != State.LIVE:
            continue
        for ancestor in islice(_upwards(nodes_by_id, node.id), 1, None):
            if ancestor.id in above:
                break
            above.add(ancestor.id)
    return above


def _by_id(nodes: Iterable[ConversationNode]) -> list[ConversationNode]:
    return sorted(nodes, key=lambda node: node.id)


def _missing_parent(node: ConversationNode) -> InvalidGraphStateError:
    return InvalidGraphStateError(
        f"node {node.id!r} has the parent {node.parent_id!r}, which is missing; "
        "add the parent, or make the node a root with parent_id=None"
    )


def _circle(ids: Iterable[int]) -> InvalidGraphStateError:
    return InvalidGraphStateError(
        f"nodes in a circle or below a circle: {sorted(ids)!r}; make one of them a root with parent_id=None"
    )


def spliced(parents: Mapping[int, int | None], gone: Collection[int]) -> dict[int, int | None]:
    """The new parent of each node whose parent is removed: its nearest remaining ancestor.

    Example:
        >>> spliced({1: None, 2: 1, 3: 2, 4: 3}, {2, 3})
        {4: 1}
    """
    return {
        node: nearest_remaining(parent, parents, gone)
        for node, parent in parents.items()
        if node not in gone and parent in gone
    }


def nearest_remaining(
    node: int | None, parents: Mapping[int, int | None], gone: Collection[int]
) -> int | None:
    """The node if it remains, else its nearest remaining ancestor; `None` if no ancestor remains."""
    visited = Visited()
    while node is not None and node in gone:
        visited.add(node)
        node = parents.get(node)
    return node


def parents_first(parents: Mapping[K, K | None]) -> list[K]:
    """Nodes in the order of `parents`, except that parents precede their children.

    Args:
        parents: The parent of each node; a parent that is not a key counts as `None`.

    Example:
        >>> parents_first({1: None, 2: 4, 3: 2, 4: 1})
        [1, 4, 2, 3]
    """
    order: dict[K, None] = {}
    for node in parents:
        chain: list[K] = []
        above: K | None = node
        while above is not None and above in parents and above not in order and len(chain) <= len(parents):
            chain.append(above)
            above = parents[above]
        order.update(dict.fromkeys(reversed(chain)))
    return list(order)


def circular(parents: Mapping[IdT, IdT | None]) -> list[IdT]:
    """The nodes in a circle or below a circle.

    Example:
        >>> circular({1: None, 2: 1, 3: 4, 4: 3})
        [3, 4]
    """
    reached: set[IdT | None] = {None}
    unreached = []
    for node in parents_first(parents):
        if parents[node] in reached or parents[node] not in parents:
            reached.add(node)
        else:
            unreached.append(node)
    return sorted(unreached)
