{{- /* What everything of a release is called: the release's name, which has the chart's in it or before it. */}}
{{- define "mistakebound.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Chart.Name .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "mistakebound.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* mistakebound.toml: the values' own, or the example. */}}
{{- define "mistakebound.configuration" -}}
{{ .Values.configuration | default (.Files.Get "files/mistakebound.toml") }}
{{- end }}
