// Package wiretest checks that a link does what package wire says.
//
// [Run] is for links of a whole rank, [Exchange] for a line between two ranks. [Sockets] and
// [UnixConns] make connected pairs. Only tests
// import it.
//
//	func TestLink(t *testing.T) {
//		wiretest.Run(t, func(t *testing.T) (a, b wiretest.Port) { … })
//	}
package wiretest
