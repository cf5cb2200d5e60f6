"""DynamicResources: pods get the devices that their ResourceClaims ask for."""

from scheduler_core.plugins.dynamic_resources.plugin import DynamicResources as DynamicResources
