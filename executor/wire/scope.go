package wire

// scope is a communicator, or its runs from seq on.
type Scope struct {
	Comm  CommID
	Seq   uint32
	Later bool // only those
}

// has tells whether a message belongs to the scope.
func (s Scope) Has(m *Message) bool {
	return m.Comm == s.Comm && (!s.Later || (m.Kind == Data || m.Kind == Eager) && int32(m.Seq-s.Seq) >= 0)
}
