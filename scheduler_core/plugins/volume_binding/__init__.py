"""VolumeBinding.

`plugin` has the extension points, `claims` sorts a pod's claims, `finder` finds volumes for all rows at once,
`assume_cache` and `reservation` remember what was assumed until the API server confirms it.
"""

from scheduler_core.plugins.volume_binding.plugin import VolumeBinding as VolumeBinding
