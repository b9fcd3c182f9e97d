"""Vulkan profiles and the devices that are held against them."""

from __future__ import annotations

import pytest

from qsmla.compiler import drivers
from qsmla.compiler.drivers import Found, FoundDevice
from qsmla.compiler.targets import Target
from qsmla.compiler.vulkan import GUARANTEED_BUFFER_BYTES, PROFILES, VulkanDevice

# What IREE's driver prints, cut to the lines that are read.
LAVAPIPE = """name: llvmpipe (LLVM 15.0.6, 256 bits)
api: 1.3.230
vendor_id: 0x10005
features: bufferDeviceAddress=yes scalarBlockLayout=yes storageBuffer8BitAccess=yes \
storageBuffer16BitAccess=yes shaderInt8=yes shaderFloat16=yes shaderBFloat16Type=no subgroupSizeControl=yes
sparse: binding=no residencyBuffer=no residencyAliased=no
subgroup: size=8 operations=0x000000bf quadOperationsInAllStages=no minSubgroupSize=8 maxSubgroupSize=8 \
requiredSubgroupSizeStages=0x00000030
"""
RADEON = (
    LAVAPIPE.replace("llvmpipe (LLVM 15.0.6, 256 bits)", "AMD Radeon RX 7900 XTX")
    .replace("0x10005", "0x1002")
    .replace("size=8 ", "size=64 ")
    .replace("minSubgroupSize=8 maxSubgroupSize=8", "minSubgroupSize=32 maxSubgroupSize=64")
)
GEFORCE = (
    LAVAPIPE.replace("llvmpipe (LLVM 15.0.6, 256 bits)", "NVIDIA H200")
    .replace("0x10005", "0x10de")
    .replace("ubgroupSize=8", "ubgroupSize=32")
    .replace("size=8 ", "size=32 ")
)


def test_a_description_is_read():
    device = VulkanDevice.parse(LAVAPIPE)
    assert (device.name, device.vendor_id) == ("llvmpipe (LLVM 15.0.6, 256 bits)", 0x10005)
    assert (device.subgroup_size, device.subgroup_range, device.subgroup_operations) == (8, (8, 8), 0xBF)
    assert "shaderInt8" in device.features
    assert "shaderBFloat16Type" not in device.features


@pytest.mark.parametrize("line", ["features", "subgroup", "vendor_id", "name"])
def test_a_description_without_a_line_is_refused(line):
    text = "\n".join(one for one in LAVAPIPE.splitlines() if not one.startswith(line))
    with pytest.raises(ValueError, match=line):
        VulkanDevice.parse(text)


@pytest.mark.parametrize(
    ("text", "profile"), [(LAVAPIPE, "lavapipe"), (RADEON, "rdna2"), (GEFORCE, "ampere")]
)
def test_a_device_finds_its_profile(text, profile):
    assert VulkanDevice.parse(text).profile() == profile


def test_a_device_without_a_profile():
    assert VulkanDevice.parse(LAVAPIPE.replace("0x10005", "0x8086")).profile() is None
    assert VulkanDevice.parse(GEFORCE.replace("shaderInt8=yes", "shaderInt8=no")).profile() is None


def test_the_wrong_subgroup_size_is_refused():
    geforce, radeon = VulkanDevice.parse(GEFORCE), VulkanDevice.parse(RADEON)
    assert geforce.unmet(PROFILES["rdna3"]) == (
        "it is compiled for subgroups of 64, and those of NVIDIA H200 are 32"
    )
    assert radeon.unmet(PROFILES["rdna3"]) is None
    # A size inside the range can be asked for, if the device lets shaders ask.
    assert radeon.unmet(PROFILES["ampere"]) is None
    stubborn = VulkanDevice.parse(RADEON.replace("subgroupSizeControl=yes", "subgroupSizeControl=no"))
    assert "subgroups of 32" in str(stubborn.unmet(PROFILES["ampere"]))
    assert "are 32 to 64" in str(radeon.unmet(PROFILES["lavapipe"]))


@pytest.mark.parametrize(
    "feature",
    [
        "storageBuffer8BitAccess",
        "storageBuffer16BitAccess",
        "shaderInt8",
        "shaderFloat16",
        "scalarBlockLayout",
    ],
)
def test_a_missing_feature_is_named(feature):
    device = VulkanDevice.parse(LAVAPIPE.replace(f"{feature}=yes", f"{feature}=no"))
    assert device.unmet(PROFILES["lavapipe"]) == f"{device.name} lacks the features {feature}"


def test_missing_subgroup_operations_are_named():
    device = VulkanDevice.parse(LAVAPIPE.replace("operations=0x000000bf", "operations=0x00000001"))
    assert "arithmetic or shuffles" in str(device.unmet(PROFILES["lavapipe"]))


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_writes_out_what_it_relies_on(name):
    info = PROFILES[name].target_info
    assert "storage = b64|b32|b16|b8" in info
    assert "int16|int8" in info
    assert f"subgroup_size_choices = [{', '.join(map(str, PROFILES[name].subgroup_sizes))}]" in info
    assert PROFILES[name].largest_buffer >= GUARANTEED_BUFFER_BYTES
    assert PROFILES[name].largest_buffer < 1 << 31


def found(*texts: str) -> Found:
    return Found(tuple(FoundDevice(text[6:12], i, text) for i, text in enumerate(texts)), None)


def test_vulkan_takes_the_profile_of_the_first_device_that_has_one(monkeypatch):
    monkeypatch.setattr(drivers, "find", lambda kind: found(RADEON, LAVAPIPE))
    assert Target.parse("vulkan").label == "vulkan:rdna2"
    device = Target.parse("vulkan:lavapipe").find_device()
    assert isinstance(device, FoundDevice)
    assert device.number == 1
    reason = Target.parse("vulkan:valhall4").unmet()
    assert reason is not None
    assert reason.count("compiled for subgroups of 16") == 2


def test_vulkan_without_a_device_lists_what_is_there(monkeypatch):
    monkeypatch.setattr(drivers, "find", lambda kind: Found((), "no loader; install one"))
    with pytest.raises(ValueError, match=r"target is 'vulkan', and here is no Vulkan device \(no loader"):
        Target.parse("vulkan")
    monkeypatch.setattr(drivers, "find", lambda kind: found(LAVAPIPE.replace("0x10005", "0x8086")))
    with pytest.raises(ValueError, match=r"here is llvmpipe .*, which no profile fits; .*vulkan:adreno"):
        Target.parse("vulkan")


@pytest.mark.parametrize(
    ("target", "capability", "reason"),
    [
        ("cuda:sm_80", "9.0", None),
        ("cuda:sm_89", "8.9", None),
        ("cuda:sm_120", "12.0", None),
        ("cuda:sm_89", "8.6", "it is compiled for sm_89, and H200 is sm_86"),
        ("cuda:sm_120", "9.0", "it is compiled for sm_120, and H200 is sm_90"),
    ],
)
def test_cuda_needs_the_compute_capability(monkeypatch, target, capability, reason):
    device = FoundDevice("H200", 1, f"- gpu-compute-capability: {capability}\n- gpu-arch-name: x\n")
    monkeypatch.setattr(drivers, "find", lambda kind: Found((device,), None))
    assert Target.parse(target).unmet() == reason


def test_cuda_that_does_not_say_is_refused(monkeypatch):
    monkeypatch.setattr(drivers, "find", lambda kind: Found((FoundDevice("H200", 1, ""),), None))
    assert Target.parse("cuda").unmet() == "the driver does not say which compute capability H200 has"
