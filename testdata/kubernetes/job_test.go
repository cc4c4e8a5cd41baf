// Package kubernetes checks job.yaml against the types of Kubernetes' API. It is a
// module of its own, so that nobody else needs these.
package kubernetes

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// TestJob decodes strictly: a field that doesn't exist is an error. Then it starts
// every pod in mind.
func TestJob(t *testing.T) {
	text, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(text, []byte("\n---\n"))
	var service core.Service
	var job batch.Job
	if err := yaml.UnmarshalStrict(documents[0], &service); err != nil {
		t.Fatalf("service: %v", err)
	}
	if err := yaml.UnmarshalStrict(documents[1], &job); err != nil {
		t.Fatalf("job: %v", err)
	}
	pod := job.Spec.Template.Spec
	if service.Spec.ClusterIP != core.ClusterIPNone || pod.Subdomain != service.Name {
		t.Errorf("cluster IP %q, subdomain %q; want a headless service of that name", service.Spec.ClusterIP, pod.Subdomain)
	}
	if got := service.Spec.Selector["batch.kubernetes.io/job-name"]; got != job.Name {
		t.Errorf("the service selects the pods of %q, not of %q", got, job.Name)
	}
	n := int(*job.Spec.Completions)
	if *job.Spec.CompletionMode != batch.IndexedCompletion || int(*job.Spec.Parallelism) != n || pod.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("%+v", job.Spec)
	}
	env := map[string]string{}
	for _, v := range pod.Containers[0].Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = v.ValueFrom.SecretKeyRef.Name + "/" + v.ValueFrom.SecretKeyRef.Key
		}
	}
	for i := range n {
		env["JOB_COMPLETION_INDEX"] = fmt.Sprint(i) // as Kubernetes sets it
		l, err := launcher.Find(func(name string) string { return env[name] })
		if err != nil || l.Name != launcher.Kubernetes || int(l.Rank) != i || l.Size != n {
			t.Errorf("pod %d: %+v, %v", i, l, err)
		}
	}
	host, _, err := net.SplitHostPort(env["TIERFLOW_RENDEZVOUS"])
	if want := job.Name + "-0." + service.Name; err != nil || host != want || env["TIERFLOW_SECRET"] == "" {
		t.Errorf("rendezvous at %q, %v, want %q; secret from %q", host, err, want, env["TIERFLOW_SECRET"])
	}
}
