package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/metrics"
)

// MetricsCommand returns metrics.
func MetricsCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "metrics [--listen ADDRESS] [JOB]",
		Short: "Show what ranks on this machine do to Prometheus",
		Long: `Prints the metrics of the ranks of this user's jobs on this machine, or of those whose
names begin with JOB, in Prometheus' text form. With --listen it serves them at
/metrics, until it is interrupted. Programs need no code for that: ranks are asked at their doors,
as ps does. The label world numbers the jobs, the oldest is 0. See go doc
./planner/metrics for the metrics.`,
		Example: `  tierflow metrics
  tierflow metrics --listen :9100
  tierflow metrics --listen 127.0.0.1:9100 4f2c91aa`,
		Args: atMostOneJob,
		RunE: kit.Interruptible(func(c *cobra.Command, names []string) error {
			if listen == "" {
				text, err := jobMetrics(c.Context(), names)
				if err == nil {
					_, err = c.OutOrStdout().Write(text)
				}
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return kit.Usagef("--listen: %w", err)
			}
			fmt.Fprintf(c.ErrOrStderr(), "serving http://%v/metrics\n", l.Addr())
			return serveMetrics(c.Context(), l, names)
		}),
	}
	c.Flags().StringVar(&listen, "listen", "", "serve there, such as :9100, in place of printing once")
	return c
}

// jobMetrics are the metrics of jobs here, as text.
func jobMetrics(ctx context.Context, names []string) ([]byte, error) {
	jobs, err := findJobs(names)
	if err != nil {
		return nil, err
	}
	var all []planner.Usage
	for world, j := range jobs {
		for _, u := range askUsages(ctx, j).ranks {
			if u != nil {
				u.World = world
				all = append(all, *u)
			}
		}
	}
	var b bytes.Buffer
	err = metrics.Write(&b, all)
	return b.Bytes(), err
}

// ServeMetrics serves the metrics of all jobs of this user here until ctx ends. An address in use
// is no error: another agent on this machine shows the same. Each request looks for jobs in the
// folder of TIERFLOW_DOOR.
func ServeMetrics(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if err := serveMetrics(ctx, l, nil); err != nil && ctx.Err() == nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// serveMetrics serves metrics until ctx ends.
func serveMetrics(ctx context.Context, l net.Listener, names []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := jobMetrics(r.Context(), names)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text) // a caller gone since needs no answer
	})
	c := &crowd{busy: map[net.Conn]bool{}}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: idleTime, ConnState: c.note}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}
