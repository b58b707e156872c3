package robots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Version is a robots.txt that an origin has, or had.
type Version struct {
	SHA256 string    `json:"sha256"`       // of its bytes, in hex
	Bytes  int       `json:"bytes"`        // its length
	First  time.Time `json:"first"`        // when it came first, as far back as is known
	At     string    `json:"at,omitempty"` // the URL that redirects led to; empty: there were none
}

// A retired file is one that an origin had before. Its bytes are in a note of
// their own, so that it costs no more to keep many: the key ends with the slot.
type retired struct {
	Version
	Slot int `json:"slot"`
}

// retire keeps the old file of an origin if a new answer takes its place, and
// tells the new one since when it has been known. It writes nothing unless the
// file has changed. The caller then writes the record: what is lost with that in
// a crash is retired again.
func (g *Gate) retire(ctx context.Context, o decorum.Origin, old, now *answer) error {
	if now.IsFile {
		now.First = now.Fetched
	}
	if old != nil && !old.IsFile {
		old = nil
	}
	switch {
	case old != nil && old.SHA256 == now.SHA256:
		now.First = old.first()
		return nil
	case old == nil && !now.IsFile:
		return nil
	}
	files, err := g.retired(ctx, o)
	if err != nil {
		return err
	}
	before := slices.Clone(files)
	if i := find(files, now.SHA256); i >= 0 { // an old file is back
		now.First = files[i].First
		files = slices.Delete(files, i, i+1)
	}
	var body []byte
	if old != nil && find(files, old.SHA256) < 0 {
		v := Version{SHA256: old.SHA256, Bytes: len(old.body), First: old.first(), At: old.At}
		files = slices.Insert(files, 0, retired{v, free(files)})
		body = old.body
	}
	files = g.fitting(files)
	if slices.Equal(files, before) {
		return nil
	}
	return g.saveRetired(ctx, o, before, files, body)
}

// first returns when the file came first.
func (a *answer) first() time.Time {
	if a.First.IsZero() {
		return a.Fetched
	}
	return a.First
}

// find returns where the file with a hash is; -1: nowhere.
func find(files []retired, hash string) int {
	return slices.IndexFunc(files, func(f retired) bool { return f.SHA256 == hash })
}

// free returns a slot that no file has.
func free(files []retired) int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(files, func(f retired) bool { return f.Slot == slot }) {
			return slot
		}
	}
}

// fitting returns the newest files, as many as may be kept.
func (g *Gate) fitting(files []retired) []retired {
	total := 0
	for i, f := range files {
		if total += f.Bytes; total > g.cfg.VersionBytes || i+1 >= g.cfg.Versions {
			return files[:i]
		}
	}
	return files
}

// saveRetired writes which files there are, and body if it is that of the first.
func (g *Gate) saveRetired(ctx context.Context, o decorum.Origin, before, files []retired, body []byte) error {
	for _, f := range before {
		if find(files, f.SHA256) < 0 {
			if err := g.setNote(ctx, o, g.slotKey(f.Slot), nil); err != nil {
				return err
			}
		}
	}
	if body != nil && len(files) > 0 {
		if err := g.setNote(ctx, o, g.slotKey(files[0].Slot), body); err != nil {
			return err
		}
	}
	var note []byte
	if len(files) > 0 {
		var err error
		if note, err = json.Marshal(files); err != nil {
			return err
		}
	}
	return g.setNote(ctx, o, g.key(versionsKey), note)
}

func (g *Gate) slotKey(slot int) string { return g.key(versionKey + strconv.Itoa(slot)) }

// retired returns the files that an origin had before, the newest first. A list
// that cannot be read is as good as none.
func (g *Gate) retired(ctx context.Context, o decorum.Origin) (files []retired, err error) {
	note, err := g.note(ctx, o, g.key(versionsKey))
	if err != nil || note == nil || json.Unmarshal(note, &files) != nil {
		return nil, err
	}
	return files, nil
}

// Versions returns the files that an origin has had, each once, the one that it
// had last first. They are those that the Gate, or one that shares its Notes and
// User-Agent, was answered with: see GateConfig.Versions.
func (g *Gate) Versions(ctx context.Context, o decorum.Origin) (versions []Version, err error) {
	r, err := g.load(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.Last; a != nil && a.IsFile {
		versions = append(versions, Version{SHA256: a.SHA256, Bytes: len(a.body), First: a.first(), At: a.At})
	}
	files, err := g.retired(ctx, o)
	for _, f := range files {
		if len(versions) == 0 || f.SHA256 != versions[0].SHA256 {
			versions = append(versions, f.Version)
		}
	}
	return versions, err
}

// Body returns the bytes of the file of an origin with the SHA-256, in hex, or
// without one of the file that counts; at most Limit and one more. They are nil
// if they are not kept.
func (g *Gate) Body(ctx context.Context, o decorum.Origin, hash string) ([]byte, error) {
	r, err := g.load(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.Last; a != nil && a.IsFile && (hash == "" || hash == a.SHA256) {
		return append([]byte{}, a.body...), nil
	}
	files, err := g.retired(ctx, o)
	i := find(files, hash)
	if err != nil || i < 0 {
		return nil, err
	}
	body, err := g.note(ctx, o, g.slotKey(files[i].Slot))
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return nil, err // a crash may have parted it from the list
	}
	return append([]byte{}, body...), err
}
