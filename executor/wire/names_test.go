package wire

import (
	"slices"
	"testing"

	"github.com/tierflow/tierflow/executor/flight"
)

// The reader of recordings has its own names for the kinds of messages.
func TestMessageNames(t *testing.T) {
	if !slices.Equal(flight.Messages, kindNames[:]) {
		t.Errorf("flight has %q, messages are %q", flight.Messages, kindNames)
	}
}
