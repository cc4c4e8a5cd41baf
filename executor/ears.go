package executor

import (
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// ears are the engine as its transport sees it.
type ears Endpoint

var _ wire.Sink = (*ears)(nil)

func (s *ears) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	(*Endpoint)(s).deliver(from, m, payload)
}

func (s *ears) Place(from levels.Rank, m *wire.Message) []byte { return (*Endpoint)(s).place(from, m) }

func (s *ears) Sent(token int32) { (*Endpoint)(s).sent(token) }

// ears returns the engine as its transport sees it.
func (e *Endpoint) ears() *ears { return (*ears)(e) }
