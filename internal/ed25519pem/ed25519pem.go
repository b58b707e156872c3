// Package ed25519pem reads and writes Ed25519 keys in PEM. Its errors say what to do,
// and repeat nothing of what was read: it may be a secret.
package ed25519pem

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// What keys are called in PEM (RFC 7468, sections 10 and 13).
const (
	privateLabel = "PRIVATE KEY"
	publicLabel  = "PUBLIC KEY"
)

// ParsePrivate reads a private key (PKCS #8, RFC 8410, section 7), as openssl genpkey
// -algorithm ed25519 writes it.
func ParsePrivate(text []byte) (ed25519.PrivateKey, error) {
	return parseKey[ed25519.PrivateKey](text, privateLabel, x509.ParsePKCS8PrivateKey, "openssl genpkey -algorithm ed25519")
}

// ParsePublic reads a public key (SubjectPublicKeyInfo, RFC 8410, section 4), as
// openssl pkey -pubout writes it.
func ParsePublic(text []byte) (ed25519.PublicKey, error) {
	return parseKey[ed25519.PublicKey](text, publicLabel, x509.ParsePKIXPublicKey, "openssl pkey -pubout")
}

// MarshalPrivate returns a private key as ParsePrivate reads it.
func MarshalPrivate(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateLabel, Bytes: der}), nil
}

// parseKey reads a key of type K from the first block of text, which has a label. maker
// is the command that writes such.
func parseKey[K any](text []byte, label string, decode func(der []byte) (any, error), command string) (key K, err error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != label {
		return key, fmt.Errorf("no %s in PEM is in it: expected -----BEGIN %s-----, as %s writes it", strings.ToLower(label), label, command)
	}
	decoded, err := decode(block.Bytes)
	if err != nil {
		return key, fmt.Errorf("the %s in it is damaged, or of a kind that is not known: expected one of Ed25519, as %s writes it", strings.ToLower(label), command)
	}
	key, ok := decoded.(K)
	if !ok {
		return key, fmt.Errorf("the %s in it is a %T: expected one of Ed25519, as %s writes it", strings.ToLower(label), decoded, command)
	}
	return key, nil
}
