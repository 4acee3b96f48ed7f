"""The tables as data: rows are whole, a pattern knows its example, and no harmless line is taken for trouble."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from stentor.machine import tables
from stentor.machine.tables import Chip, Knob, Signature

SELECTORS = {"any", "rocm", "cuda", "apu", "rdna"}
OVERRIDE = re.compile(r"\d+\.\d+\.\d+")

HARMLESS = {
    "stderr": [
        "INFO stentor: the model is ready on gfx1103 (0x100f bytes of scratch)",
        "UserWarning: expandable_segments not supported on this platform",
        "CUDA is not available; using the CPU",
        "HIP runtime 7.2.0 found 1 GPU",
        "loading libcudart.so.13",
        "MIOpen(HIP): Warning [FindSolutionImpl] no tuning record was found",
        "memory: 2.0 GiB allocated, 0 errors",
        "Fatal: none",
    ],
    "kernel": [
        "[drm] initialized amdgpu 3.64.0 for 0000:c1:00.0 on minor 1",
        "amdgpu 0000:c1:00.0: amdgpu: ring comp_1.0.0 uses VM inv eng 4 on hub 0",
        "amdgpu 0000:c1:00.0: amdgpu: SMU is initialized successfully!",
        "[drm] amdgpu: 512M of VRAM memory ready",
        "usb 1-2: reset high-speed USB device number 3 using xhci_hcd",
        "kfd kfd: amdgpu: added device 1002:15bf",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65",
        "systemd[1]: Out of memory protection is configured",
    ],
}

ROWS = [*tables.chips(), *tables.knobs(), *tables.signatures()]


@pytest.mark.parametrize("row", tables.signatures(), ids=lambda row: row.name)
def test_a_signature_is_the_first_to_know_its_own_example(row: Signature) -> None:
    found = tables.matches([row.example], row.where)
    assert [one.signature.name for one in found] == [row.name]
    assert found[0].line == row.example


@pytest.mark.parametrize("where", ["stderr", "kernel"])
def test_a_harmless_line_is_nobodys(where: tables.Where) -> None:
    assert tables.matches(HARMLESS[where], where) == []


def test_no_critical_signature_of_another_kind_claims_the_example_of_a_mild_one() -> None:
    critical = [one for one in tables.signatures() if one.critical]
    for row in (one for one in tables.signatures() if not one.critical):
        others = [one for one in critical if one.where == row.where and one.kind != row.kind]
        claims = [one.name for one in others if re.search(one.pattern, row.example)]
        assert not claims, f"{row.name} is also claimed by {claims}"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("amdgpu: MES failed to respond to msg=MISC (WAIT_REG_MEM)", "mes-dead"),
        ("amdgpu: failed to remove hardware queue from MES, doorbell=0x1002", "mes-dead"),
        ("amdgpu: MES might be in unrecoverable state, issue a GPU reset", "mes-dead"),
        ("amdgpu: remove_all_kfd_queues_mes: Failed to remove queue 0 for dev", "eviction-failed"),
        ("amdgpu: Failed to quiesce KFD", "eviction-failed"),
        ("amdgpu: ring sdma0 timeout, signaled seq=7, emitted seq=9", "ring-timeout"),
        ("amdgpu: ring gfx_0.0.0 timeout, signaled seq=7, emitted seq=9", "ring-timeout"),
        ("amdgpu: MODE2 reset", "gpu-reset"),
        ("amdgpu: GPU reset(3) succeeded!", "gpu-reset"),
        ("[drm] device wedged, but recovered through reset", "gpu-reset"),
        ("amdgpu: Ring comp_1.0.0 reset succeeded", "ring-reset"),
        ("amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00800932", "kernel-page-fault"),
        ("amdgpu: Faulty UTCL2 client ID: CPF (0x4)", "kernel-page-fault"),
        ("amdgpu: Failed to pin bo. ret -1", "queue-creation-failed"),
        ("traps: python3[4711] general protection fault ip:7f0 sp:7ffe error:0 in libtorch.so", "segfault"),
    ],
)
def test_what_the_kernel_writes_is_named(line: str, name: str) -> None:
    assert [one.signature.name for one in tables.matches([line], "kernel")] == [name]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("RuntimeError: CUDA error: out of memory", "device-out-of-memory"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB", "device-out-of-memory"),
        ("MemoryError", "host-out-of-memory"),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", "host-out-of-memory"),
        ("RuntimeError: CUDA error: no kernel image is available for execution", "no-code-for-this-gpu"),
        ("RuntimeError: HIP error: unspecified launch failure", "cuda-error"),
        ("The GPU stopped with error code: 0x100f", "invalid-isa"),
    ],
)
def test_what_a_runtime_writes_is_named(line: str, name: str) -> None:
    assert [one.signature.name for one in tables.matches([line], "stderr")] == [name]


def test_lines_of_one_log_are_not_looked_for_in_the_other() -> None:
    assert tables.matches(["amdgpu: GPU reset begin!"], "stderr") == []
    assert tables.matches(["MemoryError"], "kernel") == []


def test_a_device_that_is_lost_is_always_critical() -> None:
    assert all(one.critical for one in tables.signatures() if one.lost)


def test_every_row_has_a_source() -> None:
    assert all(one.source for one in ROWS)


def test_names_are_unique() -> None:
    for names in ([one.name for one in tables.signatures()], [one.gfx for one in tables.chips()]):
        assert len(names) == len(set(names))


def test_a_chip_has_an_override_with_its_condition_or_forbids_one_never_both() -> None:
    for one in tables.chips():
        assert (one.override is None) == (one.override_when is None), one.gfx
        assert not (one.override and one.forbid_override), one.gfx
        assert one.override is None or OVERRIDE.fullmatch(one.override), one.gfx


def test_chips_that_an_override_breaks_forbid_it() -> None:
    for gfx in ("gfx1200", "gfx1201", "gfx1150", "gfx1151", "gfx1100", "gfx1030"):
        row = tables.chip(gfx)
        assert row is not None
        assert row.forbid_override


def test_a_chip_that_the_table_lacks_is_none() -> None:
    assert tables.chip("gfx1103") is not None
    assert tables.chip("gfx9999") is None


def test_knobs_apply_to_selectors_that_exist() -> None:
    known = SELECTORS | {one.gfx for one in tables.chips()}
    assert all(set(one.applies) <= known for one in tables.knobs())


def test_what_is_only_warned_of_is_never_also_set() -> None:
    warned = {one.name for one in tables.knobs() if not one.set}
    assert {"HSA_ENABLE_INTERRUPT", "HSA_XNACK", "MIOPEN_FIND_ENFORCE", "PYTORCH_HIP_ALLOC_CONF"} <= warned
    assert not warned & {one.name for one in tables.knobs() if one.set}


def test_a_row_with_a_key_that_nobody_reads_is_refused() -> None:
    row = tables.knobs()[0].model_dump()
    with pytest.raises(ValidationError, match="extra"):
        Knob(**row, comment="x")
    with pytest.raises(ValidationError, match="either"):
        Knob(**{**row, "option": "attention"})


def test_a_text_where_a_truth_belongs_is_refused() -> None:
    with pytest.raises(ValidationError, match="bool"):
        Chip(**{**tables.chips()[0].model_dump(), "apu": "yes"})


def test_a_pattern_that_is_no_expression_is_refused() -> None:
    with pytest.raises(ValidationError, match="pattern"):
        Signature(**{**tables.signatures()[0].model_dump(), "pattern": "("})
