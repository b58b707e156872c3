// Package botauth lets a crawler prove its identity. It signs requests with an Ed25519 key by HTTP
// Message Signatures (RFC 9421), in the profile Web Bot Auth
// (draft-ietf-webbotauth-httpsig-protocol), and serves the directory of public keys by which a site
// verifies them. It never decides what is sent, and fetches nothing.
//
//	key, err := botauth.ParseKey(pem)
//	...
//	signer, err := botauth.NewSigner(key, "https://bot.example.org", 0)
//	...
//	signer.Sign(request.Header, request.URL.Host) // right before each request is sent
//
// Begin reading at Signer.Sign. httpfetch calls it if its Config.Signer is set. NewKeyDirectory
// serves the public keys, and MarshalDirectory encodes them for a server of static files. The
// package starts no goroutine and has no lock.
package botauth
