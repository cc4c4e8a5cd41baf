package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/planner/metrics"
	"github.com/tierflow/tierflow/planner/raw"
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
	var all []raw.Usage
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

// ServeMetrics serves the metrics of all jobs of this user here until ctx ends. Each request looks for jobs in the
// folder of TIERFLOW_DOOR. While another agent of this user does the same at the address it waits, to take its
// place. If anybody else has the address it is an error that says who.
func ServeMetrics(ctx context.Context, address string) error {
	for silent := false; ; {
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			if err = serveMetrics(ctx, l, nil); ctx.Err() != nil {
				return nil
			}
		case errors.Is(err, syscall.EADDRINUSE):
			before := silent
			err = whoServes(ctx, address)
			if silent = errors.Is(err, errSilent); silent && !before { // an agent that ends just now doesn't answer, either
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(againTime):
		}
	}
}

const (
	// againTime is the time between two looks whether an address has become free.
	againTime = time.Second
	// whoTime is how long the server at a taken address may take to say who it is.
	whoTime = 2 * time.Second
)

// userHeader is the header by which a server of metrics says whose jobs it shows: the user's number.
const userHeader = "Tierflow-User"

// whoServes returns nil if the server at an address shows the jobs of this user, or is just ending, and else an
// error that says who is there.
func whoServes(asked context.Context, address string) error {
	ctx, cancel := context.WithTimeout(asked, whoTime)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+net.JoinHostPort(host, port)+"/metrics", nil)
	if err != nil {
		return err
	}
	user := ""
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		answer.Body.Close()
		user = answer.Header.Get(userHeader)
	}
	switch own := strconv.Itoa(os.Getuid()); {
	case asked.Err() != nil, errors.Is(err, syscall.ECONNREFUSED), user == own:
		return nil
	case user != "":
		return fmt.Errorf("%s is taken: tierflow serves metrics there for jobs of user %.20q, and none of user %s; give another address", address, user, own)
	}
	why := errSilent
	if err == nil {
		why = errors.New("it serves something else")
	}
	return fmt.Errorf("%s is taken by another program, and no metrics are served: %w; give another address", address, why)
}

// errSilent says that the server at an address gives no answer.
var errSilent = errors.New("it doesn't answer")

// serveMetrics serves metrics until ctx ends.
func serveMetrics(ctx context.Context, l net.Listener, names []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := jobMetrics(r.Context(), names)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set(userHeader, strconv.Itoa(os.Getuid()))
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
