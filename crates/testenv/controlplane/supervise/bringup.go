package supervise

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed audit.yaml
var auditPolicy []byte

// bringUp starts the components in order and returns when the API server answers
// and the cluster is fit for use: default service account, storage class, nodes.
func (p *plane) bringUp(ctx context.Context) error {
	pki, err := p.prepare()
	if err != nil {
		return err
	}
	store, err := storeAuthority(pki.path("etcd"))
	if err != nil {
		return err
	}
	var ports [5]int
	for i := range ports {
		want := 0
		if i == 2 {
			want = p.Port
		}
		if ports[i], err = reservePort(want); err != nil {
			return err
		}
	}
	client, peer, secure, manager, scheduler := ports[0], ports[1], ports[2], ports[3], ports[4]
	server := fmt.Sprintf("https://127.0.0.1:%d", secure)
	for _, who := range []string{"admin", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if err := p.writeKubeconfig(pki, who, server); err != nil {
			return err
		}
	}
	if p.api, err = newAPIClient(server, pki); err != nil {
		return err
	}
	etcd := fmt.Sprintf("https://127.0.0.1:%d", client)
	p.mu.Lock()
	p.facts = Facts{
		Name: p.Name, Dir: p.Dir, Server: server, Etcd: etcd, Kubeconfig: p.kubeconfig("admin"), PKI: pki.dir,
		AuditLog: p.path("audit.log"), Bin: p.Bin, Pid: os.Getpid(),
	}
	p.mu.Unlock()

	if err := p.start("etcd", etcdFlags(p.path("etcd"), store, etcd, peer)...); err != nil {
		return err
	}
	health, err := store.client("client")
	if err != nil {
		return err
	}
	if err := waitHTTP(ctx, health, etcd+"/health", "etcd"); err != nil {
		return err
	}
	p.report("etcd is healthy")
	if err := p.start("kube-apiserver", p.apiServerFlags(pki, store, etcd, secure)...); err != nil {
		return err
	}
	if err := p.api.waitReady(ctx); err != nil {
		return err
	}
	version, err := p.api.version(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.facts.Version = version
	p.mu.Unlock()
	p.report("kube-apiserver " + version + " is ready")

	kwok, err := p.kwokFlags(pki)
	if err != nil {
		return err
	}
	for _, next := range []struct {
		name  string
		flags []string
	}{
		{"kube-controller-manager", p.managerFlags(pki, manager)},
		{"kube-scheduler", p.schedulerFlags(scheduler)},
		{"kwok", kwok},
	} {
		if err := p.start(next.name, next.flags...); err != nil {
			return err
		}
	}
	if err := p.api.furnish(ctx, p.Nodes); err != nil {
		return err
	}
	p.report("kube-controller-manager, kube-scheduler and kwok are at work")
	return nil
}

// prepare writes certificates and configuration.
func (p *plane) prepare() (*authority, error) {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if _, err := exec.LookPath(filepath.Join(p.Bin, name)); err != nil {
			return nil, fmt.Errorf("there is no %s in %s: build it again with `windlass testenv build`", name, p.Bin)
		}
	}
	pki, err := newAuthority(p.path("pki"))
	if err != nil {
		return nil, err
	}
	masters := []string{"system:masters"}
	for _, leaf := range []struct {
		name, user string
		groups     []string
		server     bool
	}{
		{"apiserver", "kube-apiserver", nil, true},
		{"proxy", "testenv-proxy", nil, true},
		{"admin", "testenv-admin", masters, false},
		// With per-controller credentials off, the controller manager needs the
		// rights of all its controllers: without them Deployments silently hang.
		{"kube-controller-manager", "system:kube-controller-manager", masters, true},
		{"kube-scheduler", "system:kube-scheduler", masters, true},
		{"kwok", "testenv-kwok", masters, false},
	} {
		if err := pki.issue(leaf.name, leaf.user, leaf.groups, leaf.server); err != nil {
			return nil, err
		}
	}
	if err := pki.signingKey("service-accounts"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.path("audit-policy.yaml"), auditPolicy, 0o600); err != nil {
		return nil, err
	}
	stages, err := p.kwokConfig()
	if err != nil {
		return nil, err
	}
	return pki, os.WriteFile(p.path("stages.yaml"), stages, 0o600)
}

// kwokConfig is the configuration of KWOK: the stages of objects and, on request, the directory of commands.
func (p *plane) kwokConfig() ([]byte, error) {
	documents := stageObjects()
	if p.Exec {
		room := p.path("exec")
		if err := os.MkdirAll(room, 0o700); err != nil {
			return nil, err
		}
		exec := object("kwok.x-k8s.io/v1alpha1", "ClusterExec", map[string]any{"name": "here"})
		exec["spec"] = map[string]any{"execs": []any{map[string]any{"local": map[string]any{"workDir": room}}}}
		documents = append(documents, exec)
	}
	return encodeDocuments(documents)
}

func (p *plane) kubeconfig(who string) string {
	if who == "admin" {
		return p.path("kubeconfig")
	}
	return p.path(who + ".kubeconfig")
}

func (p *plane) writeKubeconfig(pki *authority, who, server string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: windlass
clusters:
- name: windlass
  cluster:
    server: %s
    certificate-authority: %s
users:
- name: %s
  user:
    client-certificate: %s
    client-key: %s
contexts:
- name: windlass
  context:
    cluster: windlass
    user: %s
`, server, pki.path("ca.crt"), who, pki.path(who+".crt"), pki.path(who+".key"), who)
	return os.WriteFile(p.kubeconfig(who), []byte(text), 0o600)
}

// storeAuthority is an authority for etcd alone: the API server signs certificates with its own, and none of
// those opens the store.
func storeAuthority(dir string) (*authority, error) {
	store, err := newAuthority(dir)
	if err != nil {
		return nil, err
	}
	if err := store.issue("server", "etcd", nil, true); err != nil {
		return nil, err
	}
	return store, store.issue("client", "kube-apiserver", nil, false)
}

func etcdFlags(data string, store *authority, client string, peer int) []string {
	peerURL := fmt.Sprintf("https://127.0.0.1:%d", peer)
	return []string{
		"--data-dir=" + data,
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
		"--cert-file=" + store.path("server.crt"),
		"--key-file=" + store.path("server.key"),
		"--trusted-ca-file=" + store.path("ca.crt"),
		"--client-cert-auth=true",
		"--peer-cert-file=" + store.path("server.crt"),
		"--peer-key-file=" + store.path("server.key"),
		"--peer-trusted-ca-file=" + store.path("ca.crt"),
		"--peer-client-cert-auth=true",
		"--socket-reuse-port=true",
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}
}

func (p *plane) apiServerFlags(pki, store *authority, etcd string, port int) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--etcd-cafile=" + store.path("ca.crt"),
		"--etcd-certfile=" + store.path("client.crt"),
		"--etcd-keyfile=" + store.path("client.key"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true",
		"--tls-cert-file=" + pki.path("apiserver.crt"),
		"--tls-private-key-file=" + pki.path("apiserver.key"),
		"--client-ca-file=" + pki.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki.path("service-accounts.pub"),
		"--service-account-signing-key-file=" + pki.path("service-accounts.key"),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=10.0.0.0/16", // a /24 holds too few Services for scale tests
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP", // nodes' names do not resolve
		"--profiling=false",
		// OpenShift has it on: only with it is generated RBAC proven sufficient.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--audit-policy-file=" + p.path("audit-policy.yaml"),
		"--audit-log-path=" + p.path("audit.log"),
		"--audit-log-maxsize=100000", // megabytes: never rotated under a reader
	}
}

func (p *plane) managerFlags(pki *authority, port int) []string {
	return []string{
		"--kubeconfig=" + p.kubeconfig("kube-controller-manager"),
		"--leader-elect=false",
		"--use-service-account-credentials=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--service-account-private-key-file=" + pki.path("service-accounts.key"),
		"--root-ca-file=" + pki.path("ca.crt"),
		"--cluster-signing-cert-file=" + pki.path("ca.crt"),
		"--cluster-signing-key-file=" + pki.path("ca.key"),
		"--tls-cert-file=" + pki.path("kube-controller-manager.crt"),
		"--tls-private-key-file=" + pki.path("kube-controller-manager.key"),
		"--bind-address=127.0.0.1",
		"--permit-port-sharing=true",
		fmt.Sprintf("--secure-port=%d", port),
	}
}

func (p *plane) schedulerFlags(port int) []string {
	return []string{
		"--kubeconfig=" + p.kubeconfig("kube-scheduler"),
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--tls-cert-file=" + p.path("pki", "kube-scheduler.crt"),
		"--tls-private-key-file=" + p.path("pki", "kube-scheduler.key"),
		"--bind-address=127.0.0.1",
		"--permit-port-sharing=true",
		fmt.Sprintf("--secure-port=%d", port),
	}
}

func (p *plane) kwokFlags(pki *authority) ([]string, error) {
	flags := []string{
		"--kubeconfig=" + p.kubeconfig("kwok"),
		"--config=" + p.path("stages.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--node-ip=127.0.0.1",
		"--cidr=10.244.0.0/16",
	}
	if !p.Exec {
		return flags, nil
	}
	port, err := quietPort()
	if err != nil {
		return nil, err
	}
	return append(flags,
		fmt.Sprintf("--server-address=127.0.0.1:%d", port),
		fmt.Sprintf("--node-port=%d", port),
		"--tls-cert-file="+pki.path("proxy.crt"),
		"--tls-private-key-file="+pki.path("proxy.key"),
	), nil
}

// waitHTTP waits until url answers 200.
func waitHTTP(ctx context.Context, client *http.Client, url, what string) error {
	last := "no answer yet"
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); {
		answer, err := client.Get(url)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			last = answer.Status
		} else {
			last = err.Error()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s did not become ready within 90 s: %s", what, strings.TrimSpace(last))
}
