"""The audit trail: who did what, with which key, for every change."""

import json

from tests.unit.server.support import bench, running
from venire.server import ItemIn, ServiceSettings
from venire.server.actors import Actor

ME = Actor("Ann's laptop", "key_me")


@running
async def test_every_change_leaves_a_line_with_its_key() -> None:
    async with bench(server=ServiceSettings(allow_private_webhooks=True)) as b:
        service, keys, hooks = b.service, b.service.keys, b.service.webhooks
        await service.add_items("posts", [ItemIn("p1"), ItemIn("p2")], ME)
        await service.add_labels("posts", [("p1", "ann", "ok")], ME)
        await service.withdraw("posts", "p2", ME)
        await service.erase_payload("posts", "p1", ME)
        await service.change_stream("posts", {"min_labels": 2}, ME)
        await service.pause("posts", ME)
        await service.resume("posts", ME)
        made = await keys.create("x", "labeler", "ann", ME)
        await keys.revoke(made.key.id, ME)
        hook = await hooks.add("posts", "http://127.0.0.1:9/", ME)
        turned = await hooks.rotate("posts", hook.id, 60.0, ME)
        await hooks.remove("posts", hook.id, ME)
        await service.close("posts", ME)
        await service.delete_stream("posts", ME)
        first, *lines = await service.audit()
        assert (first.action, first.actor, first.key) == ("key.create", "the first start", None)
        assert (lines[0].action, lines[0].actor) == ("stream.create", "test")
        mine = lines[1:]
        assert [line.action for line in mine] == [
            "items.add",
            "labels.add",
            "item.withdraw",
            "item.erase",
            "stream.change",
            "stream.pause",
            "stream.resume",
            "key.create",
            "key.revoke",
            "webhook.add",
            "webhook.rotate",
            "webhook.remove",
            "stream.close",
            "stream.delete",
        ]
        assert {(line.actor, line.key) for line in mine} == {("Ann's laptop (key_me)", "key_me")}
        assert {line.at for line in mine} == {b.clock.wall()}
        told = {line.action: (line.stream, line.subject, line.details) for line in mine}
        assert told["items.add"] == ("posts", None, {"created": 2})
        assert told["item.withdraw"] == ("posts", "p2", {})
        assert told["stream.change"][2] == {"version": 2, "changed": ["min_labels"]}
        assert told["key.revoke"] == (None, made.key.id, {})
        assert told["stream.delete"][2] == {"items": 2, "labels": 1, "events": 5}
        until = {"old_secret_until": b.clock.wall() + 60.0}
        assert told["webhook.rotate"] == ("posts", hook.id, until)
        for secret in (made.token, hook.secret, turned.secret):
            assert secret is not None
            assert secret not in json.dumps([line.details for line in mine])
        assert [line.n for line in await service.audit(lines[1].n, 2)] == [
            line.n for line in lines[2:4]
        ]
        assert {line.stream for line in await service.audit(stream="posts")} == {"posts"}


@running
async def test_what_changes_nothing_leaves_no_line() -> None:
    async with bench() as b:
        service = b.service
        await service.add_items("posts", [ItemIn("p1")], ME)
        await service.add_labels("posts", [("p1", "ann", "ok")], ME)
        await service.withdraw("posts", "p1", ME)
        before = await service.audit()
        await service.add_items("posts", [ItemIn("p1")], ME)
        await service.add_labels("posts", [("p1", "ann", "ok"), ("p1", "ann", "spam")], ME)
        await service.withdraw("posts", "p1", ME)
        await service.change_stream("posts", {}, ME)
        await service.resume("posts", ME)
        assert await service.audit() == before
