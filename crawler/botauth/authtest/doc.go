// Package authtest verifies signed requests and key directories as a site does, for tests. It is
// written from RFC 9421 alone and shares no code with botauth, which signs them.
//
// Begin reading at VerifyRequest and VerifyKeyDirectory. The package has no state, goroutine or lock.
package authtest
