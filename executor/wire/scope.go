package wire

// Scope is a failed communicator, or its runs from Seq on.
type Scope struct {
	Comm  CommID
	Seq   uint32
	Later bool // only the runs from Seq on, and no transfers
}

// Has reports whether a message is in the scope.
func (s Scope) Has(m *Message) bool {
	return m.Comm == s.Comm && (!s.Later || (m.Kind == Data || m.Kind == Eager) && int32(m.Seq-s.Seq) >= 0)
}
