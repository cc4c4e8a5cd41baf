package planner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// TestSealedByCertificates runs collectives over connections that certificates keep, and says
// so wherever it can be asked.
func TestSealedByCertificates(t *testing.T) {
	ca, err := sealtest.NewAuthority("train-ca")
	if err != nil {
		t.Fatal(err)
	}
	option, err := ca.Write(t.TempDir(), sealtest.Leaf{Name: "ranks.train"})
	if err != nil {
		t.Fatal(err)
	}
	const by = "by certificates of CN=train-ca with names like ranks.train; this rank's holds until "
	processes(t, 3, 1, &planner.Options{TLS: option, Links: "1gbit"}, func(ctx context.Context, c *planner.Comm) error {
		if !strings.Contains(c.Secured(), by) {
			t.Errorf("secured %q", c.Secured())
		}
		if got := c.Links(); got != "1gbit+tls" {
			t.Errorf("links %q", got)
		}
		sums := make([]float32, 50_000)
		sum, err := planner.PrepareAllreduce(ctx, c, sums, sums, tasks.Sum)
		if err != nil {
			return err
		}
		if text := sum.Explain(); !strings.Contains(text, "\nbetween nodes: TLS 1.3, ") || !strings.Contains(text, by) {
			t.Errorf("explained as %s", text)
		}
		known := 0
		for _, u := range raw.Usages() {
			if u.TLS != nil && u.TLS.Made > 0 && !u.TLS.Expires.IsZero() {
				known++
			}
		}
		if known == 0 { // a communicator of another test may be left
			t.Errorf("usages %+v", raw.Usages())
		}
		return sum.Run(ctx)
	})
	text, err := join.DescribeTLS(option)
	if err != nil || !strings.Contains(text, by) {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSealedPrices: sealing is a part of prices if the machine's file has its cost, and Explain
// tells what is missing.
func TestSealedPrices(t *testing.T) {
	m := machine.Assumed()
	explain := func(tls string) (text string, ns float64) {
		t.Helper()
		data, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		processes(t, 2, 1, &planner.Options{TLS: tls, Machine: "machine", Files: inMemory("machine", data)}, func(_ context.Context, c *planner.Comm) error {
			buf := make([]float32, 50_000)
			b, err := planner.PrepareBcast(t.Context(), c, buf, 0)
			if err == nil && c.Rank() == 0 {
				text = b.Explain()
			}
			return err
		})
		_, price, _ := strings.Cut(text, "price: ")
		if _, err := fmt.Sscan(price, &ns); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return text, ns
	}
	_, plain := explain("off")
	if text, _ := explain("job"); !strings.Contains(text, "it has no seal_byte_ns and open_byte_ns: prices are too low") {
		t.Errorf("explained as %s", text)
	}
	m.SealByte, m.OpenByte = 20, 20
	text, sealed := explain("job")
	if !strings.Contains(text, "what sealing takes is added") || sealed < 1.2*plain {
		t.Errorf("plain %v µs, sealed %v µs\n%s", plain, sealed, text)
	}
	m.TLS = true
	if text, _ := explain("off"); !strings.Contains(text, "measured with TLS, and here is none: prices are too high") {
		t.Errorf("explained as %s", text)
	}
}
