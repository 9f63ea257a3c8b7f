{{/* Parts that several objects share. What is written here stands in src/clusterregistry/crinit/manifests too. */}}

{{- define "registry.selector" -}}
app.kubernetes.io/name: clusterregistry
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component | default "server" }}
{{- end }}

{{- define "registry.labels" -}}
{{ include "registry.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* With those of the user, which cannot take the place of ours: ours select the pods. */}}
{{- define "registry.labelsWith" -}}
{{- merge (include "registry.labels" . | fromYaml) (.more | default dict) | toYaml }}
{{- end }}

{{- define "registry.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "registry.labels" . | nindent 2 }}
{{- end }}

{{- define "registry.clusterWide" -}}
clusterregistry-{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end }}

{{- define "registry.storage" -}}
{{- if .Values.etcd.servers }}external-etcd{{ else if gt (int .Values.replicas) 1 }}own-etcd{{ else }}sqlite{{ end }}
{{- end }}

{{- define "registry.serviceType" -}}
{{- .Values.service.type | default (ternary "LoadBalancer" "ClusterIP" (eq .Values.mode "standalone")) }}
{{- end }}

{{- define "registry.tokens" -}}
{{- if and (eq .Values.mode "standalone") .Values.tokenAuth }}yes{{ end }}
{{- end }}

{{/* The files in the Secret of the server's etcd client, with commas. */}}
{{- define "registry.etcdFiles" -}}
{{- if eq (include "registry.storage" .) "own-etcd" -}}
ca.crt,tls.crt,tls.key
{{- else if .Values.etcd.servers -}}
{{- $files := list }}
{{- if .Values.etcd.ca }}{{ $files = append $files "ca.crt" }}{{ end }}
{{- if .Values.etcd.certificate }}{{ $files = concat $files (list "tls.crt" "tls.key") }}{{ end }}
{{- join "," $files }}
{{- end }}
{{- end }}

{{- define "registry.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "registry.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "registry.probe" -}}
httpGet: {path: {{ .path | quote }}, port: https, scheme: HTTPS}
periodSeconds: {{ .period }}
timeoutSeconds: 5
failureThreshold: {{ .failures }}
{{- end }}

{{/* With the certificate of the member, by the environment of the container: see manifests/etcd.py. */}}
{{- define "registry.etcdProbe" -}}
exec:
  command: [etcdctl, endpoint, {{ .question }}, --command-timeout=4s]
periodSeconds: {{ .period }}
timeoutSeconds: 5
failureThreshold: {{ .failures }}
{{- end }}

{{- define "registry.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "registry.selector" . | nindent 6 }}
{{- end }}

{{/* Of pods: where they run, and what others want to see at them. "of" are the values of the server, of etcd or of the controller. */}}
{{- define "registry.podMetadata" -}}
{{- with .of.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
labels: {{- include "registry.labelsWith" (dict "root" .root "component" .component "more" .of.podLabels) | nindent 2 }}
{{- end }}

{{- define "registry.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "registry.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end }}

{{/* Ours, with those of the user in their place and those that only the user gives behind them. */}}
{{- define "registry.arguments" -}}
{{- $own := list "--bind-address=0.0.0.0" "--secure-port=8443" "--data-dir=/var/lib/clusterregistry" }}
{{- $serving := "/etc/clusterregistry/serving" }}
{{- $own = concat $own (list (printf "--tls-cert-file=%s/tls.crt" $serving) (printf "--tls-private-key-file=%s/tls.key" $serving)) }}
{{- if eq .Values.mode "standalone" }}
{{- $host := printf "%s.%s.svc" .Release.Name .Release.Namespace }}
{{- $own = concat $own (list (printf "--advertise-address=%s" $host) (printf "--client-ca-file=%s/ca.crt" $serving)) }}
{{- end }}
{{- if include "registry.tokens" . }}
{{- $own = append $own "--token-auth-file=/etc/clusterregistry/tokens/tokens.csv" }}
{{- end }}
{{- if .Values.audit.enabled }}
{{- $own = append $own "--audit-log-path=-" }}
{{- end }}
{{- if ne (include "registry.storage" .) "sqlite" }}
{{- $servers := .Values.etcd.servers }}
{{- if not $servers }}
{{- range $number := until 3 }}
{{- $servers = append $servers (printf "https://%s-etcd-%d.%s-etcd.%s.svc:2379" $.Release.Name $number $.Release.Name $.Release.Namespace) }}
{{- end }}
{{- end }}
{{- $own = append $own (printf "--etcd-servers=%s" (join "," $servers)) }}
{{- $flags := dict "ca.crt" "--etcd-cafile" "tls.crt" "--etcd-certfile" "tls.key" "--etcd-keyfile" }}
{{- range $file := compact (splitList "," (include "registry.etcdFiles" .)) }}
{{- $own = append $own (printf "%s=/etc/clusterregistry/etcd/%s" (get $flags $file) $file) }}
{{- end }}
{{- end }}
{{- include "registry.chosenArguments" (dict "own" $own "overrides" .Values.arguments) }}
{{- end }}

{{- define "registry.chosenArguments" -}}
{{- $names := list }}
{{- $chosen := dict }}
{{- range concat .own .overrides }}
{{- $name := splitList "=" . | first }}
{{- $names = append $names $name }}
{{- $_ := set $chosen $name . }}
{{- end }}
{{- range uniq $names }}
- {{ get $chosen . | quote }}
{{- end }}
{{- end }}

{{/* The versions that the server serves, with commas, the preferred one first: see manifests/apiservices.py. */}}
{{- define "registry.versions" -}}
{{- $given := dict }}
{{- range .Values.arguments }}
{{- if hasPrefix "--runtime-config=" . }}
{{- $given = dict }}
{{- range splitList "," (trimPrefix "--runtime-config=" .) }}
{{- $pair := splitn "=" 2 . }}
{{- $_ := set $given (trim $pair._0) (trim (default "" $pair._1)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $group := "clusterregistry.k8s.io" }}
{{- $levels := dict "v1beta1" "api/beta" "v1alpha1" "api/alpha" }}
{{- $served := list }}
{{- range $version := list "v1beta1" "v1alpha1" }}
{{- range $plural := list "clusters" "clustersets" }}
{{- $key := printf "%s/%s" $group $version }}
{{- $value := "true" }}
{{- range list "api/all" (get $levels $version) $key (printf "%s/%s" $key $plural) }}
{{- $value = get $given . | default $value }}
{{- end }}
{{- if not (has $value (list "0" "f" "F" "false" "FALSE" "False")) }}
{{- $served = append $served $version }}
{{- end }}
{{- end }}
{{- end }}
{{- join "," (uniq $served) }}
{{- end }}
