"""How Go's encoding/json prints and reads v1 Pods and Nodes, for bodies of extender requests.

`TYPES` is the field table: `name:type`, in the order of the Go structs. After the name

- nothing: `omitempty`, left out when zero (but Go never leaves out a struct or quantity that is no pointer),
- `!`: always printed, its zero value too (null for lists and maps),
- `*`: a pointer, left out only when absent,
- `!*`: a pointer without `omitempty`, printed as null when absent.

Types: `s` string, `b` bool, `i32`, `i64`, `q` quantity, `t` time (whole seconds), `is` int or string, `any`;
`[X]` list, `{X}` map, `rl` ResourceList; anything else names a struct of the table. `*X` inside a list or map
is a pointer, so that null stays null.

Source: staging/src/k8s.io/api/core/v1/types.go, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go,
staging/src/k8s.io/kube-scheduler/extender/v1/types.go, v1.34
"""

from __future__ import annotations

_CONTAINER = (
    "name!:s image:s command:[s] args:[s] workingDir:s ports:[ContainerPort] envFrom:[EnvFromSource] "
    "env:[EnvVar] resources:ResourceRequirements resizePolicy:[ContainerResizePolicy] restartPolicy*:s "
    "restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount] volumeDevices:[VolumeDevice] "
    "livenessProbe*:Probe readinessProbe*:Probe startupProbe*:Probe lifecycle*:Lifecycle "
    "terminationMessagePath:s terminationMessagePolicy:s imagePullPolicy:s "
    "securityContext*:SecurityContext stdin:b stdinOnce:b tty:b"
)

TYPES: dict[str, str] = {
    # ---- answers of extenders
    "ExtenderFilterResult": (
        "Nodes*:NodeList NodeNames*:[s] FailedNodes:{s} FailedAndUnresolvableNodes:{s} Error:s"
    ),
    "HostPriority": "Host!:s Score!:i64",
    "ExtenderPreemptionResult": "NodeNameToMetaVictims:{*MetaVictims}",
    "MetaVictims": "Pods!:[*MetaPod] NumPDBViolations!:i64",
    "MetaPod": "UID!:s",
    "ExtenderBindingResult": "Error:s",
    # ---- metadata
    "ObjectMeta": (
        "name:s generateName:s namespace:s selfLink:s uid:s resourceVersion:s generation:i64 "
        "creationTimestamp:t deletionTimestamp*:t deletionGracePeriodSeconds*:i64 labels:{s} "
        "annotations:{s} ownerReferences:[OwnerReference] finalizers:[s] managedFields:[any]"
    ),
    "OwnerReference": "apiVersion!:s kind!:s name!:s uid!:s controller*:b blockOwnerDeletion*:b",
    "ListMeta": "selfLink:s resourceVersion:s continue:s remainingItemCount*:i64",
    "LabelSelector": "matchLabels:{s} matchExpressions:[LabelSelectorRequirement]",
    "LabelSelectorRequirement": "key!:s operator!:s values:[s]",
    # ---- Node
    "NodeList": "kind:s apiVersion:s metadata:ListMeta items!:[Node]",
    "Node": "kind:s apiVersion:s metadata:ObjectMeta spec:NodeSpec status:NodeStatus",
    "NodeSpec": (
        "podCIDR:s podCIDRs:[s] providerID:s unschedulable:b taints:[Taint] "
        "configSource*:NodeConfigSource externalID:s"
    ),
    "Taint": "key!:s value:s effect!:s timeAdded*:t",
    "NodeConfigSource": "configMap*:ConfigMapNodeConfigSource",
    "ConfigMapNodeConfigSource": "namespace!:s name!:s uid:s resourceVersion:s kubeletConfigKey!:s",
    "NodeStatus": (
        "capacity:rl allocatable:rl phase:s conditions:[NodeCondition] addresses:[NodeAddress] "
        "daemonEndpoints:NodeDaemonEndpoints nodeInfo:NodeSystemInfo images:[ContainerImage] "
        "volumesInUse:[s] volumesAttached:[AttachedVolume] config*:NodeConfigStatus "
        "runtimeHandlers:[NodeRuntimeHandler] features*:NodeFeatures"
    ),
    "NodeCondition": "type!:s status!:s lastHeartbeatTime!:t lastTransitionTime!:t reason:s message:s",
    "NodeAddress": "type!:s address!:s",
    "NodeDaemonEndpoints": "kubeletEndpoint:DaemonEndpoint",
    "DaemonEndpoint": "Port!:i32",
    "NodeSystemInfo": (
        "machineID!:s systemUUID!:s bootID!:s kernelVersion!:s osImage!:s containerRuntimeVersion!:s "
        "kubeletVersion!:s kubeProxyVersion!:s operatingSystem!:s architecture!:s swap*:NodeSwapStatus"
    ),
    "NodeSwapStatus": "capacity*:i64",
    "ContainerImage": "names!:[s] sizeBytes:i64",
    "AttachedVolume": "name!:s devicePath!:s",
    "NodeConfigStatus": (
        "assigned*:NodeConfigSource active*:NodeConfigSource lastKnownGood*:NodeConfigSource error:s"
    ),
    "NodeRuntimeHandler": "name!:s features*:NodeRuntimeHandlerFeatures",
    "NodeRuntimeHandlerFeatures": "recursiveReadOnlyMounts*:b userNamespaces*:b",
    "NodeFeatures": "supplementalGroupsPolicy*:b",
    # ---- Pod
    "Pod": "kind:s apiVersion:s metadata:ObjectMeta spec:PodSpec status:PodStatus",
    "PodSpec": (
        "volumes:[Volume] initContainers:[Container] containers!:[Container] "
        "ephemeralContainers:[EphemeralContainer] restartPolicy:s terminationGracePeriodSeconds*:i64 "
        "activeDeadlineSeconds*:i64 dnsPolicy:s nodeSelector:{s} serviceAccountName:s serviceAccount:s "
        "automountServiceAccountToken*:b nodeName:s hostNetwork:b hostPID:b hostIPC:b "
        "shareProcessNamespace*:b securityContext*:PodSecurityContext "
        "imagePullSecrets:[LocalObjectReference] hostname:s subdomain:s affinity*:Affinity "
        "schedulerName:s tolerations:[Toleration] hostAliases:[HostAlias] priorityClassName:s "
        "priority*:i32 dnsConfig*:PodDNSConfig readinessGates:[PodReadinessGate] runtimeClassName*:s "
        "enableServiceLinks*:b preemptionPolicy*:s overhead:rl "
        "topologySpreadConstraints:[TopologySpreadConstraint] setHostnameAsFQDN*:b os*:PodOS hostUsers*:b "
        "schedulingGates:[PodSchedulingGate] resourceClaims:[PodResourceClaim] "
        "resources*:ResourceRequirements hostnameOverride*:s"
    ),
    "LocalObjectReference": "name:s",
    "HostAlias": "ip!:s hostnames:[s]",
    "PodDNSConfig": "nameservers:[s] searches:[s] options:[PodDNSConfigOption]",
    "PodDNSConfigOption": "name:s value*:s",
    "PodReadinessGate": "conditionType!:s",
    "PodOS": "name!:s",
    "PodSchedulingGate": "name!:s",
    "PodResourceClaim": "name!:s resourceClaimName*:s resourceClaimTemplateName*:s",
    "Toleration": "key:s operator:s value:s effect:s tolerationSeconds*:i64",
    "TopologySpreadConstraint": (
        "maxSkew!:i32 topologyKey!:s whenUnsatisfiable!:s labelSelector*:LabelSelector minDomains*:i32 "
        "nodeAffinityPolicy*:s nodeTaintsPolicy*:s matchLabelKeys:[s]"
    ),
    "PodSecurityContext": (
        "seLinuxOptions*:SELinuxOptions windowsOptions*:WindowsSecurityContextOptions runAsUser*:i64 "
        "runAsGroup*:i64 runAsNonRoot*:b supplementalGroups:[i64] supplementalGroupsPolicy*:s "
        "fsGroup*:i64 sysctls:[Sysctl] fsGroupChangePolicy*:s seccompProfile*:SeccompProfile "
        "appArmorProfile*:AppArmorProfile seLinuxChangePolicy*:s"
    ),
    "SELinuxOptions": "user:s role:s type:s level:s",
    "WindowsSecurityContextOptions": (
        "gmsaCredentialSpecName*:s gmsaCredentialSpec*:s runAsUserName*:s hostProcess*:b"
    ),
    "SeccompProfile": "type!:s localhostProfile*:s",
    "AppArmorProfile": "type!:s localhostProfile*:s",
    "Sysctl": "name!:s value!:s",
    # ---- affinity
    "Affinity": "nodeAffinity*:NodeAffinity podAffinity*:PodAffinity podAntiAffinity*:PodAffinity",
    "NodeAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution*:NodeSelector "
        "preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]"
    ),
    "NodeSelector": "nodeSelectorTerms!:[NodeSelectorTerm]",
    "NodeSelectorTerm": "matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]",
    "NodeSelectorRequirement": "key!:s operator!:s values:[s]",
    "PreferredSchedulingTerm": "weight!:i32 preference!:NodeSelectorTerm",
    "PodAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm] "
        "preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]"
    ),
    "WeightedPodAffinityTerm": "weight!:i32 podAffinityTerm!:PodAffinityTerm",
    "PodAffinityTerm": (
        "labelSelector*:LabelSelector namespaces:[s] topologyKey!:s namespaceSelector*:LabelSelector "
        "matchLabelKeys:[s] mismatchLabelKeys:[s]"
    ),
    # ---- containers
    "Container": _CONTAINER,
    "EphemeralContainer": f"{_CONTAINER} targetContainerName:s",
    "ContainerPort": "name:s hostPort:i32 containerPort!:i32 protocol:s hostIP:s",
    "EnvVar": "name!:s value:s valueFrom*:EnvVarSource",
    "EnvVarSource": (
        "fieldRef*:ObjectFieldSelector resourceFieldRef*:ResourceFieldSelector "
        "configMapKeyRef*:KeySelector secretKeyRef*:KeySelector fileKeyRef*:FileKeySelector"
    ),
    "ObjectFieldSelector": "apiVersion:s fieldPath!:s",
    "ResourceFieldSelector": "containerName:s resource!:s divisor:q",
    "KeySelector": "name:s key!:s optional*:b",
    "FileKeySelector": "volumeName!:s path!:s key!:s optional*:b",
    "EnvFromSource": "prefix:s configMapRef*:EnvSource secretRef*:EnvSource",
    "EnvSource": "name:s optional*:b",
    "ResourceRequirements": "limits:rl requests:rl claims:[ResourceClaim]",
    "ResourceClaim": "name!:s request:s",
    "ContainerResizePolicy": "resourceName!:s restartPolicy!:s",
    "ContainerRestartRule": "action:s exitCodes*:ContainerRestartRuleOnExitCodes",
    "ContainerRestartRuleOnExitCodes": "operator:s values:[i32]",
    "VolumeMount": (
        "name!:s readOnly:b recursiveReadOnly*:s mountPath!:s subPath:s mountPropagation*:s subPathExpr:s"
    ),
    "VolumeDevice": "name!:s devicePath!:s",
    "Probe": (
        "exec*:ExecAction httpGet*:HTTPGetAction tcpSocket*:TCPSocketAction grpc*:GRPCAction "
        "initialDelaySeconds:i32 timeoutSeconds:i32 periodSeconds:i32 successThreshold:i32 "
        "failureThreshold:i32 terminationGracePeriodSeconds*:i64"
    ),
    "ExecAction": "command:[s]",
    "HTTPGetAction": "path:s port!:is host:s scheme:s httpHeaders:[HTTPHeader]",
    "HTTPHeader": "name!:s value!:s",
    "TCPSocketAction": "port!:is host:s",
    "GRPCAction": "port!:i32 service!*:s",
    "SleepAction": "seconds!:i64",
    "Lifecycle": "postStart*:LifecycleHandler preStop*:LifecycleHandler stopSignal*:s",
    "LifecycleHandler": (
        "exec*:ExecAction httpGet*:HTTPGetAction tcpSocket*:TCPSocketAction sleep*:SleepAction"
    ),
    "SecurityContext": (
        "capabilities*:Capabilities privileged*:b seLinuxOptions*:SELinuxOptions "
        "windowsOptions*:WindowsSecurityContextOptions runAsUser*:i64 runAsGroup*:i64 runAsNonRoot*:b "
        "readOnlyRootFilesystem*:b allowPrivilegeEscalation*:b procMount*:s "
        "seccompProfile*:SeccompProfile appArmorProfile*:AppArmorProfile"
    ),
    "Capabilities": "add:[s] drop:[s]",
    # ---- volumes
    "Volume": (
        "name!:s hostPath*:HostPathVolumeSource emptyDir*:EmptyDirVolumeSource "
        "gcePersistentDisk*:GCEPersistentDiskVolumeSource "
        "awsElasticBlockStore*:AWSElasticBlockStoreVolumeSource gitRepo*:GitRepoVolumeSource "
        "secret*:SecretVolumeSource nfs*:NFSVolumeSource iscsi*:ISCSIVolumeSource "
        "glusterfs*:GlusterfsVolumeSource persistentVolumeClaim*:PersistentVolumeClaimVolumeSource "
        "rbd*:RBDVolumeSource flexVolume*:FlexVolumeSource cinder*:CinderVolumeSource "
        "cephfs*:CephFSVolumeSource flocker*:FlockerVolumeSource downwardAPI*:DownwardAPIVolumeSource "
        "fc*:FCVolumeSource azureFile*:AzureFileVolumeSource configMap*:ConfigMapVolumeSource "
        "vsphereVolume*:VsphereVirtualDiskVolumeSource quobyte*:QuobyteVolumeSource "
        "azureDisk*:AzureDiskVolumeSource photonPersistentDisk*:PhotonPersistentDiskVolumeSource "
        "projected*:ProjectedVolumeSource portworxVolume*:PortworxVolumeSource "
        "scaleIO*:ScaleIOVolumeSource storageos*:StorageOSVolumeSource csi*:CSIVolumeSource "
        "ephemeral*:EphemeralVolumeSource image*:ImageVolumeSource"
    ),
    "HostPathVolumeSource": "path!:s type*:s",
    "EmptyDirVolumeSource": "medium:s sizeLimit*:q",
    "GCEPersistentDiskVolumeSource": "pdName!:s fsType:s partition:i32 readOnly:b",
    "AWSElasticBlockStoreVolumeSource": "volumeID!:s fsType:s partition:i32 readOnly:b",
    "GitRepoVolumeSource": "repository!:s revision:s directory:s",
    "SecretVolumeSource": "secretName:s items:[KeyToPath] defaultMode*:i32 optional*:b",
    "KeyToPath": "key!:s path!:s mode*:i32",
    "NFSVolumeSource": "server!:s path!:s readOnly:b",
    "ISCSIVolumeSource": (
        "targetPortal!:s iqn!:s lun!:i32 iscsiInterface:s fsType:s readOnly:b portals:[s] "
        "chapAuthDiscovery:b chapAuthSession:b secretRef*:LocalObjectReference initiatorName*:s"
    ),
    "GlusterfsVolumeSource": "endpoints!:s path!:s readOnly:b",
    "PersistentVolumeClaimVolumeSource": "claimName!:s readOnly:b",
    "RBDVolumeSource": (
        "monitors!:[s] image!:s fsType:s pool:s user:s keyring:s secretRef*:LocalObjectReference readOnly:b"
    ),
    "FlexVolumeSource": "driver!:s fsType:s secretRef*:LocalObjectReference readOnly:b options:{s}",
    "CinderVolumeSource": "volumeID!:s fsType:s readOnly:b secretRef*:LocalObjectReference",
    "CephFSVolumeSource": (
        "monitors!:[s] path:s user:s secretFile:s secretRef*:LocalObjectReference readOnly:b"
    ),
    "FlockerVolumeSource": "datasetName:s datasetUUID:s",
    "DownwardAPIVolumeSource": "items:[DownwardAPIVolumeFile] defaultMode*:i32",
    "DownwardAPIVolumeFile": (
        "path!:s fieldRef*:ObjectFieldSelector resourceFieldRef*:ResourceFieldSelector mode*:i32"
    ),
    "FCVolumeSource": "targetWWNs:[s] lun*:i32 fsType:s readOnly:b wwids:[s]",
    "AzureFileVolumeSource": "secretName!:s shareName!:s readOnly:b",
    "ConfigMapVolumeSource": "name:s items:[KeyToPath] defaultMode*:i32 optional*:b",
    "VsphereVirtualDiskVolumeSource": "volumePath!:s fsType:s storagePolicyName:s storagePolicyID:s",
    "QuobyteVolumeSource": "registry!:s volume!:s readOnly:b user:s group:s tenant:s",
    "AzureDiskVolumeSource": "diskName!:s diskURI!:s cachingMode*:s fsType*:s readOnly*:b kind*:s",
    "PhotonPersistentDiskVolumeSource": "pdID!:s fsType:s",
    "ProjectedVolumeSource": "sources!:[VolumeProjection] defaultMode*:i32",
    "VolumeProjection": (
        "secret*:SecretProjection downwardAPI*:DownwardAPIProjection configMap*:ConfigMapProjection "
        "serviceAccountToken*:ServiceAccountTokenProjection "
        "clusterTrustBundle*:ClusterTrustBundleProjection podCertificate*:PodCertificateProjection"
    ),
    "SecretProjection": "name:s items:[KeyToPath] optional*:b",
    "DownwardAPIProjection": "items:[DownwardAPIVolumeFile]",
    "ConfigMapProjection": "name:s items:[KeyToPath] optional*:b",
    "ServiceAccountTokenProjection": "audience:s expirationSeconds*:i64 path!:s",
    "ClusterTrustBundleProjection": "name*:s signerName*:s labelSelector*:LabelSelector optional*:b path!:s",
    "PodCertificateProjection": (
        "signerName:s keyType:s maxExpirationSeconds*:i32 credentialBundlePath:s keyPath:s "
        "certificateChainPath:s"
    ),
    "PortworxVolumeSource": "volumeID!:s fsType:s readOnly:b",
    "ScaleIOVolumeSource": (
        "gateway!:s system!:s secretRef!*:LocalObjectReference sslEnabled:b protectionDomain:s "
        "storagePool:s storageMode:s volumeName:s fsType:s readOnly:b"
    ),
    "StorageOSVolumeSource": (
        "volumeName:s volumeNamespace:s fsType:s readOnly:b secretRef*:LocalObjectReference"
    ),
    "CSIVolumeSource": (
        "driver!:s readOnly*:b fsType*:s volumeAttributes:{s} nodePublishSecretRef*:LocalObjectReference"
    ),
    "EphemeralVolumeSource": "volumeClaimTemplate*:PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimTemplate": "metadata:ObjectMeta spec!:PersistentVolumeClaimSpec",
    "PersistentVolumeClaimSpec": (
        "accessModes:[s] selector*:LabelSelector resources:VolumeResourceRequirements volumeName:s "
        "storageClassName*:s volumeMode*:s dataSource*:TypedLocalObjectReference "
        "dataSourceRef*:TypedObjectReference volumeAttributesClassName*:s"
    ),
    "VolumeResourceRequirements": "limits:rl requests:rl",
    "TypedLocalObjectReference": "apiGroup!*:s kind!:s name!:s",
    "TypedObjectReference": "apiGroup!*:s kind!:s name!:s namespace*:s",
    "ImageVolumeSource": "reference:s pullPolicy:s",
    # ---- status
    "PodStatus": (
        "observedGeneration:i64 phase:s conditions:[PodCondition] message:s reason:s nominatedNodeName:s "
        "hostIP:s hostIPs:[IP] podIP:s podIPs:[IP] startTime*:t initContainerStatuses:[ContainerStatus] "
        "containerStatuses:[ContainerStatus] qosClass:s ephemeralContainerStatuses:[ContainerStatus] "
        "resize:s resourceClaimStatuses:[PodResourceClaimStatus] "
        "extendedResourceClaimStatus*:PodExtendedResourceClaimStatus"
    ),
    "PodCondition": (
        "type!:s observedGeneration:i64 status!:s lastProbeTime!:t lastTransitionTime!:t reason:s message:s"
    ),
    "IP": "ip!:s",
    "ContainerStatus": (
        "name!:s state:ContainerState lastState:ContainerState ready!:b restartCount!:i32 image!:s "
        "imageID!:s containerID:s started*:b allocatedResources:rl resources*:ResourceRequirements "
        "volumeMounts:[VolumeMountStatus] user*:ContainerUser allocatedResourcesStatus:[ResourceStatus] "
        "stopSignal*:s"
    ),
    "ContainerState": (
        "waiting*:ContainerStateWaiting running*:ContainerStateRunning terminated*:ContainerStateTerminated"
    ),
    "ContainerStateWaiting": "reason:s message:s",
    "ContainerStateRunning": "startedAt!:t",
    "ContainerStateTerminated": (
        "exitCode!:i32 signal:i32 reason:s message:s startedAt!:t finishedAt!:t containerID:s"
    ),
    "VolumeMountStatus": "name!:s mountPath!:s readOnly:b recursiveReadOnly*:s",
    "ContainerUser": "linux*:LinuxContainerUser",
    "LinuxContainerUser": "uid!:i64 gid!:i64 supplementalGroups:[i64]",
    "ResourceStatus": "name!:s resources:[ResourceHealth]",
    "ResourceHealth": "resourceID!:s health:s",
    "PodResourceClaimStatus": "name!:s resourceClaimName*:s",
    "PodExtendedResourceClaimStatus": (
        "requestMappings!:[ContainerExtendedResourceRequest] resourceClaimName!:s"
    ),
    "ContainerExtendedResourceRequest": "containerName!:s resourceName!:s requestName!:s",
}
