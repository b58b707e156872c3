package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A FileVersion is a robots.txt that an origin has, or had.
type FileVersion struct {
	SHA256       string    `json:"sha256"`       // of its bytes, in hex
	Size         int       `json:"bytes"`        // its length
	FirstSeen    time.Time `json:"first"`        // when it came first, as far back as is known
	RedirectedTo string    `json:"at,omitempty"` // the URL that redirects led to; empty: there were none
}

// An archivedVersion is a robots.txt that an origin had before. Its bytes are in a note of
// their own, so that it costs no more to keep many: the key ends with the slot.
type archivedVersion struct {
	FileVersion
	Slot int `json:"slot"`
}

// archiveVersionIfReplaced keeps the old file of an origin if a new answer takes its place, and
// tells the new one since when it has been known. It writes nothing unless the
// file has changed. The caller then writes the record: what is lost with that in
// a crash is retired again.
func (s *recordStore) archiveVersionIfReplaced(ctx context.Context, o decorum.Origin, previous, current *storedResponse) error {
	if current.IsRobotsFile {
		current.FirstSeen = current.FetchedAt
	}
	if previous != nil && !previous.IsRobotsFile {
		previous = nil
	}
	switch {
	case previous != nil && previous.SHA256 == current.SHA256:
		current.FirstSeen = previous.firstSeen()
		return nil
	case previous == nil && !current.IsRobotsFile:
		return nil
	}
	files, err := s.archivedVersions(ctx, o)
	if err != nil {
		return err
	}
	before := slices.Clone(files)
	if i := indexOfVersionWithHash(files, current.SHA256); i >= 0 { // an old file is back
		current.FirstSeen = files[i].FirstSeen
		files = slices.Delete(files, i, i+1)
	}
	var body []byte
	if previous != nil && indexOfVersionWithHash(files, previous.SHA256) < 0 {
		v := FileVersion{SHA256: previous.SHA256, Size: len(previous.body), FirstSeen: previous.firstSeen(), RedirectedTo: previous.RedirectedTo}
		files = slices.Insert(files, 0, archivedVersion{v, unusedVersionSlot(files)})
		body = previous.body
	}
	files = s.selectVersionsToKeep(files)
	if slices.Equal(files, before) {
		return nil
	}
	return s.saveArchivedVersions(ctx, o, before, files, body)
}

// firstSeen returns when the file came first.
func (a *storedResponse) firstSeen() time.Time {
	return cmp.Or(a.FirstSeen, a.FetchedAt)
}

// indexOfVersionWithHash returns where the file with a hash is; -1: nowhere.
func indexOfVersionWithHash(files []archivedVersion, hash string) int {
	return slices.IndexFunc(files, func(f archivedVersion) bool { return f.SHA256 == hash })
}

// unusedVersionSlot returns a slot that no file has.
func unusedVersionSlot(files []archivedVersion) int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(files, func(f archivedVersion) bool { return f.Slot == slot }) {
			return slot
		}
	}
}

// selectVersionsToKeep returns the newest files, as many as may be kept.
func (s *recordStore) selectVersionsToKeep(files []archivedVersion) []archivedVersion {
	total := 0
	for i, f := range files {
		if total += f.Size; total > s.maxArchiveBytes || i+1 >= s.maxVersions {
			return files[:i]
		}
	}
	return files
}

// saveArchivedVersions writes which files there are, and body if it is that of the first.
func (s *recordStore) saveArchivedVersions(ctx context.Context, o decorum.Origin, before, files []archivedVersion, body []byte) error {
	for _, f := range before {
		if indexOfVersionWithHash(files, f.SHA256) < 0 {
			if err := s.writeNote(ctx, o, s.versionNoteKey(f.Slot), nil); err != nil {
				return err
			}
		}
	}
	if body != nil && len(files) > 0 {
		if err := s.writeNote(ctx, o, s.versionNoteKey(files[0].Slot), body); err != nil {
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
	return s.writeNote(ctx, o, s.noteKeyForAgent(versionListNoteKey), note)
}

func (s *recordStore) versionNoteKey(slot int) string {
	return s.noteKeyForAgent(versionNoteKeyPrefix + strconv.Itoa(slot))
}

// archivedVersions returns the files that an origin had before, the newest first. A list
// that cannot be read is as good as none.
func (s *recordStore) archivedVersions(ctx context.Context, o decorum.Origin) (files []archivedVersion, err error) {
	note, err := s.readNote(ctx, o, s.noteKeyForAgent(versionListNoteKey))
	if err != nil || note == nil || json.Unmarshal(note, &files) != nil {
		return nil, err
	}
	return files, nil
}

// FileVersions returns the files that an origin has had, each once, the one that it
// had last first. They are those that the Gate, or one that shares its notes and
// User-Agent, was answered with: see Config.MaxVersions.
func (g *Gate) FileVersions(ctx context.Context, o decorum.Origin) (versions []FileVersion, err error) {
	r, err := g.records.loadRecord(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.LastResponse; a != nil && a.IsRobotsFile {
		versions = append(versions, FileVersion{SHA256: a.SHA256, Size: len(a.body), FirstSeen: a.firstSeen(), RedirectedTo: a.RedirectedTo})
	}
	files, err := g.records.archivedVersions(ctx, o)
	for _, f := range files {
		if len(versions) == 0 || f.SHA256 != versions[0].SHA256 {
			versions = append(versions, f.FileVersion)
		}
	}
	return versions, err
}

// FileBodyByHash returns the bytes of the file of an origin with the SHA-256, in hex, or
// without one of the file that counts; at most robots.MaxFileBytes and one more. They are nil
// if they are not kept.
func (g *Gate) FileBodyByHash(ctx context.Context, o decorum.Origin, hash string) ([]byte, error) {
	r, err := g.records.loadRecord(ctx, o)
	if err != nil {
		return nil, err
	}
	if a := r.LastResponse; a != nil && a.IsRobotsFile && (hash == "" || hash == a.SHA256) {
		return append([]byte{}, a.body...), nil
	}
	files, err := g.records.archivedVersions(ctx, o)
	i := indexOfVersionWithHash(files, hash)
	if err != nil || i < 0 {
		return nil, err
	}
	body, err := g.records.readNote(ctx, o, g.records.versionNoteKey(files[i].Slot))
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return nil, err // a crash may have parted it from the list
	}
	return append([]byte{}, body...), err
}
