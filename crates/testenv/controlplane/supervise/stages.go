package supervise

import (
	"bytes"
	"encoding/json"
	"strings"
)

// The stages of KWOK for nodes, pods and volumes: nothing runs, only statuses change.
//
// A pod is Running and Ready at once, a Job's pod succeeds, a deletion completes.
// The annotation testenv.windlass.dev/pod, on the pod or its template, chooses
// another story:
//
//	never-ready        runs, never becomes Ready
//	ready-after        Ready after testenv.windlass.dev/delay (a Go duration, default 1s)
//	crash-loop         CrashLoopBackOff, with the termination message testenv.windlass.dev/message
//	image-pull-error   ImagePullBackOff, with testenv.windlass.dev/message if given
//	node-lost          not Ready, reason NodeLost, and its deletion does not complete
//	fail               runs, then fails with testenv.windlass.dev/message (for Jobs)
//
// A change of the annotation to "ready" releases a live pod. A claim of class "standard" (the
// default one) gets a volume, unless it is annotated testenv.windlass.dev/volume:
// pending; the real controller manager binds the two. Selectors exclude one another,
// because KWOK picks at random among stages that match.

type stage struct {
	name, kind string
	when       []requirement
	delay      any
	step       map[string]any
}

type requirement struct {
	key, operator string
	values        []string
}

const (
	storyOf      = `.metadata.annotations["testenv.windlass.dev/pod"] // "ready"`
	readyStatus  = `.status.conditions.[] | select( .type == "Ready" ) | .status`
	readyReason  = `.status.conditions.[] | select( .type == "Ready" ) | .reason`
	waitReason   = `[.status.containerStatuses[]?.state.waiting.reason] | .[0] // ""`
	statusReason = `.status.reason // ""`
)

func in(key string, values ...string) requirement    { return requirement{key, "In", values} }
func notIn(key string, values ...string) requirement { return requirement{key, "NotIn", values} }
func absent(key string) requirement                  { return requirement{key, "DoesNotExist", nil} }
func present(key string) requirement                 { return requirement{key, "Exists", nil} }

// pod is a stage of pods that live, have not ended, and have one of these stories.
func pod(name string, stories []string, when requirement, template ...string) stage {
	return stage{
		name: "pod-" + name, kind: "Pod",
		when: []requirement{absent(".metadata.deletionTimestamp"), notIn(".status.phase", "Succeeded", "Failed"), in(storyOf, stories...), when},
		step: patchStatus(template...),
	}
}

func allStages() []stage {
	after := pod("ready-after", []string{"ready-after"}, notIn(readyStatus, "True"), now, conditionsReady, containers(running, "", true), placed, phase("Running"))
	after.delay = map[string]any{
		"durationMilliseconds": 1000,
		"durationFrom":         map[string]any{"jq": map[string]any{"expression": `.metadata.annotations["testenv.windlass.dev/delay"]`}},
	}
	complete := pod("complete", []string{"ready", "ready-after"}, in(readyStatus, "True"), now, conditionsNotReady("PodCompleted", ""), containers(terminated("0", "Completed", `""`), "", false), phase("Succeeded"))
	complete.when = append(complete.when, in(".metadata.ownerReferences.[].kind", "Job"))
	standard := in(".spec.storageClassName", "standard")
	return []stage{
		pod("ready", []string{"ready", "fail"}, notIn(readyStatus, "True"), now, conditionsReady, containers(running, "", true), placed, phase("Running")),
		after,
		pod("never-ready", []string{"never-ready"}, notIn(readyReason, "ContainersNotReady"), now, unready, containers(running, "", false), placed, phase("Running")),
		pod("crash-loop", []string{"crash-loop"}, notIn(waitReason, "CrashLoopBackOff"),
			now, message(`"exit status 1"`), unready,
			containers(waiting("CrashLoopBackOff", `printf "back-off 40s restarting failed container=%s" .name`), "lastState: "+terminated("1", "Error", "$message"), false), placed, phase("Running")),
		pod("image-pull-error", []string{"image-pull-error"}, notIn(waitReason, "ImagePullBackOff"),
			now, message(`""`), unready,
			containers(waiting("ImagePullBackOff", `or $message ( printf "Back-off pulling image %q" .image )`), "", false), placed, phase("Pending")),
		pod("node-lost", []string{"node-lost"}, notIn(statusReason, "NodeLost"),
			now, unready, containers(running, "", false), placed,
			"phase: Running", "reason: NodeLost", `message: {{ printf "Node %s which was running pod %s is unresponsive" .spec.nodeName .metadata.name | Quote }}`),
		complete,
		pod("fail", []string{"fail"}, in(readyStatus, "True"), now, message(`"exit status 1"`), conditionsNotReady("PodFailed", ""), containers(terminated("1", "Error", "$message"), "", false), phase("Failed")),
		{name: "pod-delete", kind: "Pod", when: []requirement{present(".metadata.deletionTimestamp"), notIn(storyOf, "node-lost")}, step: remove},
		{name: "node-ready", kind: "Node", when: []requirement{notIn(readyStatus, "True")}, step: patchStatus(now, nodeStatus)},
		{name: "volume-provision", kind: "PersistentVolumeClaim",
			when: []requirement{absent(".metadata.deletionTimestamp"), standard, absent(".spec.volumeName"), in(`.metadata.annotations["testenv.windlass.dev/volume"] // "bound"`, "bound")},
			step: map[string]any{"apply": map[string]any{"template": volume}}},
		{name: "volume-delete", kind: "PersistentVolume", when: []requirement{absent(".metadata.deletionTimestamp"), standard, in(".status.phase", "Released")}, step: remove},
	}
}

var remove = map[string]any{"delete": true}

func patchStatus(template ...string) map[string]any {
	return map[string]any{"patch": map[string]any{"subresource": "status", "root": "status", "template": strings.Join(template, "\n") + "\n"}}
}

const now = `{{ $now := Now }}`

var (
	conditionsReady = conditions(`"True"`, `""`, `""`) + `
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}`
	unready = conditionsNotReady("ContainersNotReady", "containers with unready status")
)

func conditionsNotReady(reason, message string) string {
	return conditions(`"False"`, reason, `"`+message+`"`)
}

func conditions(status, reason, message string) string {
	lines := []string{"conditions:", `- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}`}
	for _, kind := range []string{"Ready", "ContainersReady"} {
		lines = append(lines, "- {type: "+kind+", status: "+status+", lastTransitionTime: {{ $now | Quote }}, reason: "+reason+", message: "+message+"}")
	}
	return strings.Join(lines, "\n")
}

const running = `{running: {startedAt: {{ $now | Quote }}}}`

func waiting(reason, message string) string {
	return `{waiting: {reason: ` + reason + `, message: {{ ` + message + ` | Quote }}}}`
}

func terminated(code, reason, message string) string {
	return `{terminated: {exitCode: ` + code + `, reason: ` + reason + `, message: {{ ` + message + ` | Quote }}, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}`
}

// message binds $message to the annotation of the pod.
func message(otherwise string) string {
	return `{{ $message := or ( index ( or .metadata.annotations dict ) "testenv.windlass.dev/message" ) ` + otherwise + ` }}`
}

func containers(state, extra string, ready bool) string {
	readiness, restarts := "ready: false", "restartCount: 0"
	if ready {
		readiness = "ready: true"
	}
	if extra != "" {
		restarts = "restartCount: 3"
	}
	return `containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ` + readiness + `
  ` + restarts + `
  state: ` + state + `
  ` + extra + `
{{ end }}`
}

func phase(name string) string {
	return "phase: " + name + "\nreason: null\nmessage: null"
}

// placed is the status of a pod that a node runs.
const placed = `startTime: {{ or .status.startTime $now | Quote }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
  {{ end }}
{{ end }}
{{ if not .status.podIP }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ end }}`

const nodeStatus = `conditions:
{{ range NodeConditions }}
- {type: {{ .type | Quote }}, status: {{ .status | Quote }}, reason: {{ .reason | Quote }}, message: {{ .message | Quote }}, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
addresses:
- {type: InternalIP, address: 127.0.0.1}
- {type: Hostname, address: {{ .metadata.name | Quote }}}
{{ with NodePort }}
daemonEndpoints: {kubeletEndpoint: {Port: {{ . }}}}
{{ end }}
allocatable: {cpu: "1000", memory: 1Ti, ephemeral-storage: 1Ti, pods: "100000"}
capacity: {cpu: "1000", memory: 1Ti, ephemeral-storage: 1Ti, pods: "100000"}
nodeInfo: {architecture: amd64, operatingSystem: linux, osImage: KWOK, kernelVersion: kwok, kubeletVersion: {{ printf "kwok-%s" Version | Quote }}, kubeProxyVersion: "", containerRuntimeVersion: kwok, bootID: "", machineID: "", systemUUID: ""}
phase: Running`

const volume = `apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-{{ .metadata.uid }}
  annotations:
    pv.kubernetes.io/provisioned-by: testenv.windlass.dev/kwok
spec:
  storageClassName: standard
  persistentVolumeReclaimPolicy: Delete
  volumeMode: {{ or .spec.volumeMode "Filesystem" | Quote }}
  accessModes:
  {{ YAML .spec.accessModes 2 }}
  capacity:
  {{ YAML .spec.resources.requests 2 }}
  claimRef:
    apiVersion: v1
    kind: PersistentVolumeClaim
    namespace: {{ .metadata.namespace | Quote }}
    name: {{ .metadata.name | Quote }}
    uid: {{ .metadata.uid | Quote }}
  hostPath:
    path: /nowhere/pvc-{{ .metadata.uid }}
`

// stageObjects are all stages as KWOK reads them.
func stageObjects() []map[string]any {
	var objects []map[string]any
	for _, s := range allStages() {
		var expressions []any
		for _, r := range s.when {
			jq := map[string]any{"key": r.key, "operator": r.operator}
			if r.values != nil {
				jq["values"] = r.values
			}
			expressions = append(expressions, map[string]any{"jq": jq})
		}
		spec := map[string]any{
			"resourceRef": map[string]string{"apiGroup": "v1", "kind": s.kind},
			"selector":    map[string]any{"matchExpressions": expressions},
			"steps":       []any{s.step},
		}
		if s.delay != nil {
			spec["delay"] = s.delay
		}
		stage := object("kwok.x-k8s.io/v1alpha1", "Stage", map[string]any{"name": s.name})
		stage["spec"] = spec
		objects = append(objects, stage)
	}
	return objects
}

// encodeDocuments writes objects into one configuration file.
func encodeDocuments(objects []map[string]any) ([]byte, error) {
	var file bytes.Buffer
	for _, each := range objects {
		encoded, err := json.MarshalIndent(each, "", "  ")
		if err != nil {
			return nil, err
		}
		file.WriteString("---\n")
		file.Write(encoded)
		file.WriteString("\n")
	}
	return file.Bytes(), nil
}
