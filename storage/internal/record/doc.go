// Package record encodes entries and host states as bytes, for the engines that keep them in files or
// on servers. A field that is not set takes no space, apart from a flag. The bytes are in existing
// files and servers: a new field needs a flag of its own and is appended after the others. A record with a
// flag that a program does not know is damaged for that program, which does not visit its URL: after a
// release, a new flag also raises the format of package bolt, so that earlier programs refuse the file.
//
// Begin reading at AppendEntry and ParseEntry. A record has no checksum and no version: the engines
// add them. The package has no state, no goroutines and no locks.
package record
