package botauth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"
)

// examplePEM is the key in RFC 9421, Appendix B.1.4.
const examplePEM = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
`

func parseExampleKey(t *testing.T) *Key {
	t.Helper()
	found, _ := pem.Decode([]byte(examplePEM))
	private, err := x509.ParsePKCS8PrivateKey(found.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return newKeyFromPrivate(private.(ed25519.PrivateKey))
}

// TestSignatureVectors: signatures with the example key equal those that other implementations
// computed. Ed25519 is deterministic, so they must be the same.
func TestSignatureVectors(t *testing.T) {
	k := parseExampleKey(t)
	if k.public.X != "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs" || k.ID() != exampleKeyID {
		t.Errorf("the key is %+v", k.public)
	}
	for _, tt := range []struct {
		name    string
		covered []component
		params  signatureParams
		want    string
	}{
		{"RFC 9421, Appendix B.2.6", []component{
			{`"date"`, "Tue, 20 Apr 2021 02:07:55 GMT"}, {`"@method"`, "POST"}, {`"@path"`, "/foo"},
			{`"@authority"`, "example.com"},
			{`"content-type"`, "application/json"}, {`"content-length"`, "18"},
		}, signatureParams("").addTime("created", time.Unix(1618884473, 0)).addString("keyid", "test-key-ed25519"),
			":wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"},
		{"Web Bot Auth, a request", []component{
			{`"@authority"`, "example.com"}, {`"signature-agent";key="agent2"`, `"https://signature-agent.test"`},
		}, signatureParams("").addTime("created", time.Unix(1735689600, 0)).addString("keyid",
			exampleKeyID).addString("alg", "ed25519").
			addTime("expires", time.Unix(4889289600, 0)).
			addString("nonce",
				"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==").
			addString("tag", "web-bot-auth"),
			":RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:"},
	} {
		if _, got := k.sign(tt.covered, tt.params); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestDirectoryVector: the signed directory equals the profile's example in its bytes, digest and
// signature, given the example's times.
func TestDirectoryVector(t *testing.T) {
	k := parseExampleKey(t)
	sum := sha256.Sum256(MarshalDirectory(k))
	digest := "sha-256=" + encodeStructuredBytes(sum[:])
	if want := "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"; digest != want {
		t.Errorf("%s, want %s: %s", digest, want, MarshalDirectory(k))
	}
	_, got := k.sign([]component{{`"@authority";req`, "signature-agent.test"}, {`"content-digest"`, digest}},
		signatureParams("").addTime("created", time.Unix(1735689600, 0)).addTime("expires", time.Unix(4889289600, 0)).
			addString("keyid", k.ID()).addString("tag", "http-message-signatures-directory"))
	want := ":l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestThumbprint: the thumbprint equals the example of RFC 8037, Appendix A.3.
func TestThumbprint(t *testing.T) {
	if got, want := thumbprint(
		"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNewNonce: nonces have the length that verifiers of early drafts require, and are unique.
func TestNewNonce(t *testing.T) {
	a, b := newNonce(), newNonce()
	if bytes, err := base64.StdEncoding.DecodeString(a); err != nil || len(bytes) != 64 || a == b {
		t.Errorf("%q, %q: %v", a, b, err)
	}
}
