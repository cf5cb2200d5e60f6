"""The simulated cluster: an API server, controllers and kubelets around the scheduler, in virtual time.

`world` holds the objects, `kubelet` and `controllers/` change them, `simulation` is the loop.
"""
