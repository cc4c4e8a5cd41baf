package executor

import (
	"errors"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// ears are the engine as its link sees it.
type ears Endpoint

var _ wire.Sink = (*ears)(nil)

func (s *ears) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	(*Endpoint)(s).deliver(from, m, payload)
}

func (s *ears) Place(from levels.Rank, m *wire.Message) []byte { return (*Endpoint)(s).place(from, m) }

// Fail breaks what a rank is in that said what can't be: the control plane knows no
// better. Of any other rank it may.
func (s *ears) Fail(peer levels.Rank, err error) {
	e := (*Endpoint)(s)
	if errors.Is(err, ErrProtocol) {
		e.accuse(nil, peer, err)
		return
	}
	e.suspect(nil, peer, err)
}

func (s *ears) Sent(token int32) { (*Endpoint)(s).sent(token) }

// ears returns the engine as its link sees it.
func (e *Endpoint) ears() *ears { return (*ears)(e) }
