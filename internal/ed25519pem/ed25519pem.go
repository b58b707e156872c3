// Package ed25519pem reads and writes Ed25519 keys in PEM. Its errors say what to do, and never
// contain any of the text, which may be a secret.
package ed25519pem

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// The labels of keys in PEM (RFC 7468, sections 10 and 13).
const (
	privateLabel = "PRIVATE KEY"
	publicLabel  = "PUBLIC KEY"
)

// ParsePrivate parses a private key (PKCS #8, RFC 8410, section 7) in the form that openssl genpkey
// -algorithm ed25519 writes.
func ParsePrivate(text []byte) (ed25519.PrivateKey, error) {
	return parseKey[ed25519.PrivateKey](text, privateLabel, x509.ParsePKCS8PrivateKey,
		"openssl genpkey -algorithm ed25519")
}

// ParsePublic parses a public key (SubjectPublicKeyInfo, RFC 8410, section 4) in the form that
// openssl pkey -pubout writes.
func ParsePublic(text []byte) (ed25519.PublicKey, error) {
	return parseKey[ed25519.PublicKey](text, publicLabel, x509.ParsePKIXPublicKey, "openssl pkey -pubout")
}

// MarshalPrivate returns a private key in the form that ParsePrivate parses.
func MarshalPrivate(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateLabel, Bytes: der}), nil
}

// parseKey parses a key of type K from the first PEM block of text, which must have the label.
// Errors name command, which writes such a block.
func parseKey[K any](text []byte, label string, decode func(der []byte) (any, error),
	command string) (key K, err error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != label {
		return key, fmt.Errorf("no %s in PEM found: expected -----BEGIN %s-----, as %s writes it",
			strings.ToLower(label), label, command)
	}
	decoded, err := decode(block.Bytes)
	if err != nil {
		return key, fmt.Errorf("the %s is damaged or of an unknown kind: expected an Ed25519 key, as %s writes it",
			strings.ToLower(label), command)
	}
	key, ok := decoded.(K)
	if !ok {
		return key, fmt.Errorf("the %s is a %T: expected an Ed25519 key, as %s writes it",
			strings.ToLower(label), decoded, command)
	}
	return key, nil
}
