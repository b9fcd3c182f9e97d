"""`qsmla inspect`: what an artifact says about itself."""

from __future__ import annotations

import hashlib

from qsmla.cli.options import ArtifactArgument, JsonOption
from qsmla.cli.report import print_json, print_pairs
from qsmla.compiler.artifact import Artifact


def inspect(artifact: ArtifactArgument, as_json: JsonOption = False) -> None:
    """Show what an artifact is and whether this machine can run it; needs no device."""
    loaded = Artifact.load(artifact, check_machine=False)
    unmet = loaded.unmet()
    contents = loaded.contents()
    if as_json:
        print_json(
            {
                "path": str(artifact),
                "bytes": len(loaded.data),
                "sha256": hashlib.sha256(loaded.data).hexdigest(),
                "label": loaded.spec.label,
                **loaded.record.to_dict(),
                "contents": contents,
                "runs_here": unmet is None,
                "reason": unmet,
            }
        )
        return
    pairs = {"artifact": f"{artifact} ({len(loaded.data)} bytes)", **loaded.spec.to_dict()}
    pairs["schedule"] = loaded.schedule.label
    for target in loaded.targets:
        features = (
            f" ({target.architecture}: {', '.join(target.cpu_features)})" if target.architecture else ""
        )
        pairs["target"] = f"{pairs['target']}, " if "target" in pairs else ""
        pairs["target"] += f"{target.label}{features}"
    pairs |= {f"version of {name}": version for name, version in sorted(loaded.versions.items())}
    pairs["source hash"] = loaded.source_hash
    pairs["flags"] = " ".join(loaded.record.flags)
    pairs["contents"] = ", ".join(f"{name} ({size} bytes)" for name, size in contents.items())
    pairs["runs here"] = "yes" if unmet is None else f"no: {unmet}"
    print_pairs(pairs)
