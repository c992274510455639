{{- /* tachograph.image (list $ "agent"): the image's full name. */ -}}
{{- define "tachograph.image" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
tachograph-{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end -}}

{{- /* Labels that say who made an object; selectors never have them. */ -}}
{{- define "tachograph.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "tachograph.metadata" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
name: {{ index . 2 }}
namespace: {{ $root.Release.Namespace }}
labels:
  app.kubernetes.io/name: tacho-{{ $kind }}
  {{- include "tachograph.labels" $root | nindent 2 }}
{{- end -}}

{{- /* Services of the collectors, the preferred one first. */ -}}
{{- define "tachograph.services" -}}
tacho-collector{{ if .Values.collector.standby }} tacho-collector-standby{{ end }}
{{- end -}}

{{- /* The addresses of the collectors that share the jobs. */ -}}
{{- define "tachograph.members" -}}
{{- range until (int .Values.collector.members) -}}
{{- if . }} {{ end }}tacho-collector-{{ . }}.tacho-collector-pods.{{ $.Release.Namespace }}.svc:7411
{{- end -}}
{{- end -}}

{{- define "tachograph.priority" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "tachograph.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
