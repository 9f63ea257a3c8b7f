"""An operator as kopf's documentation has them. It runs in an environment of its own, which has kopf: `kopf run`."""
# mypy: ignore-errors

import json
import os

import kopf

CLUSTERS = ("clusterregistry.k8s.io", "v1alpha1", "clusters")


def say(what: str, **about: object) -> None:
    print(json.dumps({"what": what, **about}), flush=True)  # noqa: T201 - tests read it


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.loggers = bool(os.environ.get("POST_LOGS"))


@kopf.on.create(*CLUSTERS)
def register(name, retry, patch, body, **_):
    if retry == 0:
        raise kopf.TemporaryError("not at the first try", delay=0.1)
    patch.status["conditions"] = [{"type": "OK", "status": "True"}]
    kopf.info(body, reason="Registered", message=f"{name} is registered")
    say("created", name=name, retry=retry)


@kopf.on.update(*CLUSTERS, field="spec.cloudProvider.name")
def move(name, old, new, **_):
    say("updated", name=name, old=old, new=new)


@kopf.timer(*CLUSTERS, interval=0.5)
def look(name, patch, annotations, **_):
    looked = int(annotations.get("example.com/looked", 0)) + 1
    patch.metadata.annotations["example.com/looked"] = str(looked)
    say("looked", name=name, times=looked)


@kopf.on.delete(*CLUSTERS)
def deregister(name, **_):
    say("deleted", name=name)


@kopf.on.event("coordination.k8s.io", "v1", "leases")
def lease(event, namespace, name, **_):
    say("lease", type=event["type"], namespace=namespace, name=name)
