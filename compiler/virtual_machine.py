"""The one instance of IREE's virtual machine that a process has.

Making an instance writes the types of the virtual machine anew where all instances read them: a call that
runs meanwhile in another thread fails with "ref type mismatch". So there is one, made when this module is
imported, before anything can run.
"""

from __future__ import annotations

from typing import Final

import iree.runtime as rt

INSTANCE: Final = rt.VmInstance()
