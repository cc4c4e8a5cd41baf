package kit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// program is a program with a group of two commands: one that ends with an error, and one that
// has moved.
func program(err error) *cobra.Command {
	fails := &cobra.Command{Use: "fail", Args: NoOperands, RunE: func(c *cobra.Command, _ []string) error {
		fmt.Fprint(c.OutOrStdout(), "said")
		return err
	}}
	takes := &cobra.Command{Use: "take FILE", Args: Operand("a file"), RunE: func(*cobra.Command, []string) error { return nil }}
	return NewRoot("prog", "", Group("group", "A group", fails, takes, Moved("gone", "other gone")))
}

// The exit status says whether arguments were wrong, and a complaint names the command.
func TestExecute(t *testing.T) {
	for _, test := range []struct {
		line   string
		err    error
		status int
		want   string // begins what is complained of; empty: nothing is
	}{
		{"group fail", nil, 0, ""},
		{"group fail", errors.New("broken"), 1, "prog group fail: broken\n"},
		{"group fail", Usagef("%d is too much", 5), 2, "prog group fail: 5 is too much\n"},
		{"group fail", WithStatus(errors.New("ended"), 143), 143, "prog group fail: ended\n"},
		{"group fail", fmt.Errorf("more: %w", Usagef("wrong")), 2, "prog group fail: more: wrong\n"},
		{"group fail now", nil, 2, `prog group fail: argument "now"; there are only flags`},
		{"group take", nil, 2, "prog group take: no argument; give a file"},
		{"group take x", nil, 0, ""},
		{"group take x y", nil, 2, `prog group take: 2 arguments ["x" "y"]; give a file, and nothing else`},
		{"group gone --any flag", nil, 2, "prog group gone: this is other gone now"},
		{"group", nil, 2, "prog group: no command given; known are fail, take; --help says more"},
		{"nosuch -n 2 prog", nil, 2, `prog: unknown command "nosuch"; known are completion, group`},
		{"group nosuch", nil, 2, `prog group: unknown command "nosuch"; known are fail, take`},
		{"help group nosuch", nil, 2, `prog help: unknown command "nosuch"; known are fail, take`},
		{"group fail --nosuch", nil, 2, "prog group fail: unknown flag --nosuch; --help lists all"},
	} {
		var out, complaints strings.Builder
		status := Execute(t.Context(), program(test.err), strings.Fields(test.line), nil, &out, &complaints)
		if got := complaints.String(); status != test.status || !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("prog %s, which ends with %v: status %d, %q; want %d, %q", test.line, test.err, status, got, test.status, test.want)
		}
	}
}

// A complaint of nothing is none.
func TestUsageError(t *testing.T) {
	if err := UsageError(nil); err != nil {
		t.Errorf("%v", err)
	}
	cause := errors.New("cause")
	if err := UsageError(cause); !errors.Is(err, cause) {
		t.Errorf("%v hides its cause", err)
	}
}
