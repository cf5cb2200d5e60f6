"""Configurations of the scheduler: KubeSchedulerConfiguration v1 and the legacy Policy.

>>> from scheduler_core.plugins import load_configuration
>>> loaded = load_configuration('''
... apiVersion: kubescheduler.config.k8s.io/v1
... kind: KubeSchedulerConfiguration
... profiles:
... - plugins:
...     score:
...       enabled: [{name: ImageLocality, weight: 5}]
...       disabled: [{name: NodeResourcesFit}]
... ''')
>>> plan = loaded.plans[0]
>>> plan.scheduler_name, plan.plugins["queueSort"], dict(plan.weights)["ImageLocality"]
('default-scheduler', ('PrioritySort',), 5)

A text goes through five stages, one module each; an error at any of them is a `ConfigurationError` whose
`errors` name the fields, and nothing has been run:

======================  ==========================================================================
`decode`                strictly: unknown and duplicate fields, wrong types, kinds (`DecodeError`)
`defaults`              every default written out; doing it twice changes nothing
`types`                 frozen objects (`load.configuration_from`)
`validation`            all errors at once, with Kubernetes' types, fields and words
`construction`          the plugins each profile runs, in order, with weights (`ConstructionError`)
======================  ==========================================================================

`wire` declares fields once for checking, building and printing; `args` is the base of plugins' args, `catalog` what
a configuration needs to know of the plugins there are; `policy` translates a Policy to a v1 document.

Known differences from kube-scheduler v1.34: YAML aliases are refused; a tlsConfig names no files unless the
caller passes a way to read them; a RequestedToCapacityRatio strategy without its parameters is an error where
the real program crashes; a negative score weight is always refused, where upstream lets some through.
"""
