// Package seal makes TLS 1.3 connections, and sealed links that need no connection.
//
// The handshake is that of crypto/tls. A [Conn] then is a net.Conn like any other, but for two
// things: a write whose time is up does not damage it, and nothing of the stream behind a
// record is read ahead. So a Conn can be taken apart, by [Conn.Detach]: whoever owns the
// socket from then on seals and opens records in memory, with a [Session].
//
// A Session has a record layer of its own. Its records are like those of TLS 1.3: AES-128-GCM
// with a counter as nonce, as in RFC 8446, 5.2 and 5.3. In place of the version their headers
// have two bytes that only the other side can make, so that a changed length is seen at once. Its keys come from the
// handshake's exporter, as those of SRTP do (RFC 5764). That of crypto/tls would copy each
// byte once more on both sides, and allocates with each record that it reads. The kind of a
// record stands in its header alone, which is authenticated: so plaintext is sealed where it
// lies. After [renewAfter] records a direction goes on with a new key, which both sides derive
// from the last: nothing is sent for it, and nothing waits.
//
// The package decides nothing about who may connect: package join does.
package seal
