// Package seal makes TLS 1.3 connections, and sealed links without a connection.
//
// The handshake is by crypto/tls. A [Conn] then is a net.Conn like any other, but for two
// things: a deadline in the middle of a write does not damage it, and nothing of the stream behind a
// record is read ahead. So a Conn can be taken apart, by [Conn.Detach]: the new owner of the
// socket seals and opens records in memory, with a [Session].
//
// A Session has a record layer of its own. Its records are like those of TLS 1.3: AES-128-GCM
// with a counter as nonce, as in RFC 8446, 5.2 and 5.3. In place of the version their headers
// have two bytes from a key of the link, so a changed length is seen at once. Its keys come from the
// handshake's exporter, as for SRTP (RFC 5764). The record layer of crypto/tls would copy each
// byte once more on both sides, and allocates with each record it reads. The kind of a
// record stands in its header alone, and the header is authenticated: so plaintext is sealed in
// place. After [renewAfter] records a direction goes on with a new key, derived by both sides
// from the last: nothing is sent for it, and nothing waits.
//
// The package decides nothing about who may connect: package join does.
package seal
