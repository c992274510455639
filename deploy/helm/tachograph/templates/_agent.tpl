{{- /* The agent on the nodes that "nodes" selects. Keys: root, suffix of its names, component, nodes, gpu, tpu. */ -}}
{{- define "tachograph.agent" }}
{{- $root := .root }}
{{- $values := .root.Values.agent }}
{{- $name := printf "tacho-agent%s" .suffix }}
{{- /* It is the cluster's, so its name has the namespace. */ -}}
{{- $role := printf "%s:%s" .root.Release.Namespace $name }}
{{- $devices := and $values.chips (not .gpu) }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "tachograph.metadata" (list .root "agent" $name) | nindent 2 }}
automountServiceAccountToken: false  # Only the agent's pods have a token.
{{- if $values.node.enabled }}
---
# To read taints, cordon and health of its own node. docs/kubernetes.md says why for all nodes.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $role }}
  labels:
    app.kubernetes.io/name: tacho-agent
    {{- include "tachograph.labels" .root | nindent 4 }}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels:
    app.kubernetes.io/name: tacho-agent
    {{- include "tachograph.labels" .root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $role | quote }}}
subjects:
  - {kind: ServiceAccount, name: {{ $name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "tachograph.metadata" (list .root "agent" $name) | nindent 2 }}
data:
  agent.yaml: |
    {{- include "tachograph.agentConfig" . | nindent 4 }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  {{- include "tachograph.metadata" (list .root "agent" $name) | nindent 2 }}
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: tacho-agent, app.kubernetes.io/component: {{ .component }}}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 10%}
  template:
    metadata:
      labels: {app.kubernetes.io/name: tacho-agent, app.kubernetes.io/component: {{ .component }}}
      annotations:
        # A changed configuration restarts the pods.
        checksum/config: {{ include "tachograph.agentConfig" . | sha256sum }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: {{ $values.node.enabled }}  # To ask for its node.
      {{- include "tachograph.pullSecrets" .root | nindent 6 }}
      {{- include "tachograph.priority" $values | nindent 6 }}
      # At its end it delivers rows for 5 s, and stops its sources within 2 s.
      terminationGracePeriodSeconds: 30
      # libtpu's metrics and a node's endpoints are on the node's loopback. /proc/net shows the node only
      # in the node's network.
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      # To see which process holds which chip, and what trainers use.
      hostPID: true
      {{- if .gpu }}
      runtimeClassName: {{ $values.gpu.runtimeClassName }}
      {{- end }}
      nodeSelector:
        kubernetes.io/os: linux
        {{- with $values.nodeSelector }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .nodes }}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  {{- toYaml . | nindent 18 }}
      {{- end }}
      {{- if or $values.chips $values.tolerations }}
      tolerations:
        {{- if $values.chips }}
        - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
        - {key: google.com/tpu, operator: Exists, effect: NoSchedule}
        {{- end }}
        {{- with $values.tolerations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- include "tachograph.agentContainers" (dict "root" .root "gpu" .gpu "devices" $devices) | nindent 6 }}
      volumes:
        - name: config
          configMap: {name: {{ $name }}}
        - name: credentials
          projected:
            defaultMode: {{ if $values.chips }}0400{{ else }}0440{{ end }}
            sources:
              - secret:
                  name: {{ $values.tokenSecret }}
                  items: [{key: token, path: token}]
              - secret:
                  name: {{ include "tachograph.caSecret" .root }}
                  items: [{key: ca.crt, path: ca.crt}]
        # On the node, so that waiting rows and rings outlive the pod.
        - name: spool
          hostPath: {path: /var/lib/tacho-agent, type: DirectoryOrCreate}
        - name: rings
          hostPath: {path: /run/tacho, type: DirectoryOrCreate}
        {{- if $devices }}
        - name: devices
          hostPath: {path: /dev, type: Directory}
        {{- end }}
        - name: temporary
          emptyDir: {sizeLimit: 16Mi}
{{ end -}}

{{- define "tachograph.caSecret" -}}
{{- $made := and .Values.collector.enabled .Values.collector.tls.certManager.enabled -}}
{{- .Values.agent.caSecret | default (ternary .Values.collector.tls.secret .Values.agent.tokenSecret $made) -}}
{{- end -}}

{{- define "tachograph.agentContainers" }}
{{- $values := .root.Values.agent }}
{{- $image := include "tachograph.image" (list .root "agent") -}}
securityContext:
  {{- if $values.chips }}
  # It has uid 0 with only two capabilities (below). It needs them to see which trainer holds a
  # chip. Trainers in group 7411 create rings (supplementalGroups in their pods).
  runAsUser: 0
  runAsGroup: 0
  supplementalGroups: [7411]
  {{- else }}
  runAsUser: 7411
  runAsGroup: 7411
  runAsNonRoot: true
  fsGroup: 7411  # So that it can read its credentials.
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
initContainers:
  # Members of the group create rings here. The sticky bit keeps others from deleting them.
  - name: rings
    image: {{ $image }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    {{- if $values.chips }}
    command: [sh, -c, chgrp 7411 /run/tacho && chmod 3770 /run/tacho]
    {{- else }}
    # The directories of the node are root's at first.
    command:
      - sh
      - -c
      - >-
        chown -R 7411:7411 /var/lib/tacho-agent && chmod 700 /var/lib/tacho-agent &&
        chown 7411:7411 /run/tacho && chmod 3770 /run/tacho
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      {{- if $values.chips }}
      capabilities: {drop: [ALL]}
      {{- else }}
      runAsUser: 0
      runAsNonRoot: false
      capabilities: {drop: [ALL], add: [CHOWN, DAC_READ_SEARCH, FOWNER]}
      {{- end }}
    resources:
      requests: {cpu: 10m, memory: 16Mi}
      limits: {memory: 32Mi}
    volumeMounts:
      - {name: rings, mountPath: /run/tacho}
      {{- if not $values.chips }}
      - {name: spool, mountPath: /var/lib/tacho-agent}
      {{- end }}
containers:
  - name: agent
    image: {{ $image }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [/usr/bin/tacho-agent]
    args: [--config, /etc/tacho/agent.yaml]
    env:
      # The node's name is the host in all metrics, and the agent's id.
      - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
      - {name: TACHO_AGENT_ID, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
      {{- if .gpu }}
      - {name: NVIDIA_VISIBLE_DEVICES, value: all}
      - {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
      {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      privileged: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
        {{- if $values.chips }}
        # To read /proc/<pid>/fd and environ of other users' processes.
        add: [DAC_READ_SEARCH, SYS_PTRACE]
        {{- end }}
    # The agent listens on no port. A working agent writes to its spool at least every
    # sources.host.interval (10 s).
    livenessProbe:
      exec:
        command:
          - sh
          - -c
          - test -n "$(find /var/lib/tacho-agent/spool -name '*.log' -mmin -5)"
      initialDelaySeconds: 60
      periodSeconds: 60
      timeoutSeconds: 10
      failureThreshold: 5
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    # The default place is in /dev, which belongs to the node.
    terminationMessagePath: /tmp/termination-log
    volumeMounts:
      - {name: config, mountPath: /etc/tacho, readOnly: true}
      - {name: credentials, mountPath: /etc/tacho-credentials, readOnly: true}
      - {name: spool, mountPath: /var/lib/tacho-agent}
      - {name: rings, mountPath: /run/tacho}
      {{- if .devices }}
      # To see whether chips have device files. The agent opens none.
      - {name: devices, mountPath: /dev, readOnly: true}
      {{- end }}
      - {name: temporary, mountPath: /tmp}
{{- end -}}
