"""A chat that recalls earlier messages of its user, with a fake language model."""

from langchain_core.language_models import FakeListChatModel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from server_memory import system

from langchain_threadmem import ThreadMemRetriever

model = FakeListChatModel(responses=["Noted."], sleep=0.1)
retriever = ThreadMemRetriever(memory=system)


class State(MessagesState):
    """The messages of the thread, and texts of the user's other threads."""

    recalled: list[str]


async def recall(state: State) -> dict[str, list[str]]:
    """Find messages of all conversations of the user."""
    documents = await retriever.ainvoke(state["messages"][-1].text)
    return {"recalled": [document.page_content for document in documents]}


async def answer(state: State, runtime: Runtime) -> dict[str, object]:
    """Answer, and save the question in the store."""
    if runtime.store is not None:
        await runtime.store.aput(("questions",), "last", {"text": state["messages"][-1].text})
    return {"messages": [await model.ainvoke(state["messages"])]}


builder = StateGraph(State).add_node(recall).add_node(answer)
graph = builder.add_edge(START, "recall").add_edge("recall", "answer").compile()
