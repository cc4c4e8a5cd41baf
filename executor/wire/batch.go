package wire

import "github.com/tierflow/tierflow/levels"

// Batch is messages with copies of their payloads, in the order of [Batch.Add].
// It keeps its memory: in a steady state it allocates nothing. The zero value is empty.
type Batch struct {
	items   []item
	payload []byte // of all items, one behind the other
}

type item struct {
	message Message
	from    levels.Rank
	size    int // bytes of its payload
}

// Add appends a message and copies its payload.
func (b *Batch) Add(from levels.Rank, m *Message, payload []byte) {
	b.items = append(b.items, item{*m, from, len(payload)})
	b.payload = append(b.payload, payload...)
}

// IsEmpty reports whether there is no message.
func (b *Batch) IsEmpty() bool { return len(b.items) == 0 }

// Empty hands all messages to f and then forgets them, with the addresses in them. f must
// not add to this batch.
func (b *Batch) Empty(f func(from levels.Rank, m *Message, payload []byte)) {
	payload := b.payload
	for i := range b.items {
		it := &b.items[i]
		f(it.from, &it.message, payload[:it.size])
		payload = payload[it.size:]
	}
	clear(b.items)
	b.items, b.payload = b.items[:0], b.payload[:0]
}
