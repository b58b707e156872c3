package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/ed25519pem"
)

// ParsePrivateKey parses an Ed25519 private key in PEM, as openssl genpkey -algorithm ed25519 writes it
// (PKCS #8, RFC 8410). Its errors contain nothing of the text.
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) { return ed25519pem.ParsePrivate(text) }

// ParsePublicKey parses an Ed25519 public key in PEM, as openssl pkey -pubout writes it.
func ParsePublicKey(text []byte) (ed25519.PublicKey, error) { return ed25519pem.ParsePublic(text) }

// publicKeyID returns the ID of a key in records: the SHA-256, in hex, of the public key in DER
// (SubjectPublicKeyInfo).
func publicKeyID(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// checkpointText returns the four lines that the checkpoint with number n signs. hash is that of the
// record before it.
func checkpointText(n int64, at time.Time, hash string) []byte {
	return fmt.Appendf(nil, "decorum ledger checkpoint\n%d\n%s\n%s\n", n, at.Format(time.RFC3339Nano), hash)
}

// writeCheckpoint writes a checkpoint, and the buffered records before it. The caller holds l.mu.
func (l *Ledger) writeCheckpoint() error {
	now, err := l.recordClockChangeIfAny()
	if err != nil {
		return err
	}
	at := truncateTime(now)
	signature := ed25519.Sign(l.cfg.SigningKey, checkpointText(l.head.number+1, at, string(l.head.hash[:])))
	body, err := (&Record{Checkpoint: &Checkpoint{KeyID: l.cfg.RunStart.KeyID, Signature: signature}}).encodeLine(nil)
	if err != nil {
		return err
	}
	if err := l.writeEncoded(at, body); err != nil {
		return err
	}
	l.checkpointNumber = l.head.number
	l.checkpointedAt = now // not at, which lacks the monotonic clock: setting the clock must not delay the next
	return nil
}
