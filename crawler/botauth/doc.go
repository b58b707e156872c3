// Package botauth lets a crawler prove who it is. It signs requests with an
// Ed25519 key by HTTP Message Signatures (RFC 9421), in the profile Web Bot Auth
// (draft-ietf-webbotauth-httpsig-protocol), and serves the directory of public keys
// that a site finds by them. It never decides what is sent, and fetches nothing.
//
// ParseKey or GenerateKey gives a Key, and NewSigner a Signer with it, whose Sign is
// called for each request right before it is sent: httpfetch does, where its
// Config.Signer is set. NewKeyDirectory serves the public halves of keys, and
// MarshalDirectory writes them for a server that serves files.
package botauth
