package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// apiClient is the part of a Kubernetes client that a supervisor needs.
type apiClient struct {
	server string
	http   *http.Client
}

func newAPIClient(server string, pki *authority) (*apiClient, error) {
	client, err := pki.client("admin")
	if err != nil {
		return nil, err
	}
	return &apiClient{server, client}, nil
}

func (c *apiClient) waitReady(ctx context.Context) error {
	return waitHTTP(ctx, c.http, c.server+"/readyz", "kube-apiserver")
}

// call sends one request. 409 on a create is no error: it exists.
func (c *apiClient) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "windlass-testenv-supervisor")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && !(method == http.MethodPost && answer.StatusCode == http.StatusConflict) {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return text, nil
}

func (c *apiClient) version(ctx context.Context) (string, error) {
	text, err := c.call(ctx, http.MethodGet, "/version", nil)
	if err != nil {
		return "", err
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	return version.GitVersion, json.Unmarshal(text, &version)
}

// furnish creates the nodes and the default storage class, and waits for the
// default service account, without which no pod can be created.
func (c *apiClient) furnish(ctx context.Context, nodes int) error {
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		node := object("v1", "Node", map[string]any{
			"name":   name,
			"labels": map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i)},
		})
		if _, err := c.call(ctx, http.MethodPost, "/api/v1/nodes", node); err != nil {
			return err
		}
	}
	class := object("storage.k8s.io/v1", "StorageClass", map[string]any{
		"name":        "standard",
		"annotations": map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
	})
	class["provisioner"] = "testenv.windlass.dev/kwok"
	class["reclaimPolicy"] = "Delete"
	class["volumeBindingMode"] = "Immediate"
	class["allowVolumeExpansion"] = true
	if _, err := c.call(ctx, http.MethodPost, "/apis/storage.k8s.io/v1/storageclasses", class); err != nil {
		return err
	}
	return waitHTTP(ctx, c.http, c.server+"/api/v1/namespaces/default/serviceaccounts/default", "the default service account")
}

func object(apiVersion, kind string, metadata map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// discard deletes an object that a user left behind: a path below the API server's root.
func (c *apiClient) discard(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := c.call(ctx, http.MethodDelete, path, map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
	return err
}
