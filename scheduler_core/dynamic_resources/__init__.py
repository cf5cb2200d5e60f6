"""Allocating devices to ResourceClaims, as the scheduler's structured allocator does.

`model` reads the objects of resource.k8s.io, `selectors` asks CEL about a device, `pools` gathers the devices that a
node may use, `capacity` counts what devices shared by several claims have left, `allocator` tries devices in order and
goes back, `extended` makes the claim behind extended resources. The plugin DynamicResources stands on these.

Source: staging/src/k8s.io/dynamic-resource-allocation, v1.34 to v1.36
"""
