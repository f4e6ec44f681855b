"""Token authentication for two users, each of whom sees their own threads and items."""

from typing import Any

from langgraph_sdk import Auth

USERS = {"token-of-ada": "ada", "token-of-bob": "bob"}

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The user of an `Authorization: Bearer ...` header."""
    user = USERS.get((authorization or "").removeprefix("Bearer "))
    if user is None:
        raise Auth.exceptions.HTTPException(status_code=401, detail="unknown token")
    return {"identity": user, "display_name": user.title()}


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, str]:
    """Label new threads with their user, and filter all threads by the label."""
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}
