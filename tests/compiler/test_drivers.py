"""What the drivers see here."""

from __future__ import annotations

import iree.runtime
import pytest

from qsmla.compiler import drivers


@pytest.fixture(autouse=True)
def _asked_anew():
    drivers.find.cache_clear()
    yield
    drivers.find.cache_clear()


def test_the_cpu_is_always_there():
    found = drivers.find("llvm-cpu")
    assert [device.name for device in found.devices] == ["default"]
    assert found.reason is None


@pytest.mark.parametrize(
    ("kind", "hint"), [("vulkan", "apt-get install libvulkan1"), ("cuda", "install NVIDIA's driver")]
)
def test_a_driver_that_cannot_be_made_says_what_to_install(monkeypatch, kind, hint):
    def unavailable(name):
        raise RuntimeError(f"Error creating driver: a.c:66: UNAVAILABLE; {name} is not there\nmore")

    monkeypatch.setattr(iree.runtime, "get_driver", unavailable)
    found = drivers.find(kind)
    assert found.devices == ()
    assert str(found.reason).startswith(f"{kind} is not there; install")
    assert hint in str(found.reason)


def test_a_driver_without_devices(monkeypatch):
    class Driver:
        def query_available_devices(self):
            return []

    monkeypatch.setattr(iree.runtime, "get_driver", lambda name: Driver())
    assert str(drivers.find("vulkan").reason).startswith("the vulkan driver sees no device; install")


def test_a_runtime_without_the_driver(monkeypatch):
    monkeypatch.setattr(iree.runtime, "query_available_drivers", lambda: ["local-sync"])
    assert drivers.find("cuda").reason == "this build of the IREE runtime has no cuda driver"
