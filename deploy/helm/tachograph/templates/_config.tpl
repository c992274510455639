{{- define "tachograph.collectorConfig" -}}
{{- $own := dict
  "listen" (dict "grpc" "0.0.0.0:7411" "http" "0.0.0.0:7412" "tls" (dict
    "certificate" "/etc/tacho-credentials/tls.crt" "key" "/etc/tacho-credentials/tls.key"))
  "auth" (dict "tokens_file" "/etc/tacho-credentials/tokens.yaml")
  "storage" (dict "path" "/var/lib/tacho-collector/data")
  "admin" (dict "listen" "unix:/run/tacho-collector/admin.sock") -}}
{{- if gt (int .Values.collector.members) 1 -}}
  {{- $members := splitList " " (include "tachograph.members" .) -}}
  {{- $_ := set $own "cluster" (dict "members" $members "ca_file" "/etc/tacho-credentials/ca.crt") -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $own (deepCopy .Values.collector.config)) -}}
{{- end -}}

{{- /* tachograph.agentConfig (dict "root" $ "tpu" true). */ -}}
{{- define "tachograph.agentConfig" -}}
{{- $root := .root -}}
{{- $addresses := $root.Values.agent.addresses -}}
{{- $key := "addresses" -}}
{{- if and (not $addresses) $root.Values.collector.enabled (gt (int $root.Values.collector.members) 1) -}}
  {{- $key = "members" -}}
  {{- $addresses = splitList " " (include "tachograph.members" $root) -}}
{{- else if not $addresses -}}
  {{- $addresses = list -}}
  {{- range splitList " " (include "tachograph.services" $root) -}}
    {{- $addresses = append $addresses (printf "%s.%s.svc:7411" . $root.Release.Namespace) -}}
  {{- end -}}
{{- end -}}
{{- $sources := dict "rings" (dict "directory" "/run/tacho") -}}
{{- if .tpu -}}
  {{- $plugin := dict "url" "http://127.0.0.1:2112/metrics" "name" "tpu-device-plugin" -}}
  {{- $_ := set $sources "endpoints" (dict "targets" (list $plugin)) -}}
{{- end -}}
{{- if not $root.Values.agent.node.enabled -}}
  {{- $_ := set $sources "node" (dict "enabled" false) -}}
{{- end -}}
{{- $own := dict
  "collector" (dict $key $addresses
    "tls" (dict "enabled" true "ca" "/etc/tacho-credentials/ca.crt")
    "token_file" "/etc/tacho-credentials/token")
  "spool" (dict "path" "/var/lib/tacho-agent/spool")
  "sources" $sources -}}
{{- toYaml (mustMergeOverwrite $own (deepCopy $root.Values.agent.config)) -}}
{{- end -}}
