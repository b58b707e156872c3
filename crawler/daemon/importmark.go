package daemon

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage"
)

// importNoteKey is the crawl's note that its state was imported. It is of this state
// alone, and in no export.
const importNoteKey = "import"

// An importMarker says what was imported, and whether it is all there.
type importMarker struct {
	ExportHeaderSHA256 string `json:"export"` // SHA-256 of the first line, which has the time
	Complete           bool   `json:"whole"`
}

// readImportMarker returns the mark of a state; false if it was not imported.
func readImportMarker(ctx context.Context, frontier storeInspectorImporter) (m importMarker, imported bool, err error) {
	text, err := frontier.ReadNote(ctx, decorum.Origin{}, importNoteKey)
	if err != nil || text == nil {
		return m, false, err
	}
	return m, true, json.Unmarshal(text, &m)
}

func (m importMarker) saveToFrontier(ctx context.Context, frontier storeInspectorImporter) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(frontier.SetNote(ctx, decorum.Origin{}, importNoteKey, text), frontier.Flush(ctx))
}

// requireCompleteImport returns an error if only a part of the state was imported: who crawls
// with it would visit pages again that are still to come as seen.
func requireCompleteImport(frontier storeInspectorImporter) error {
	ctx, cancel := context.WithTimeout(context.Background(), redisOpenTimeout)
	defer cancel()
	m, imported, err := readImportMarker(ctx, frontier)
	if err == nil && imported && !m.Complete {
		err = usage.Errorf("only a part of this crawl was imported: repeat decorum frontier import with the whole export")
	}
	return err
}

// isEmptyStore reports whether a store was never used.
func isEmptyStore(ctx context.Context, s storeInspectorImporter) (bool, error) {
	empty := true
	err := s.Origins(ctx, func(storage.OriginInfo) bool {
		empty = false
		return false
	})
	if err != nil || !empty {
		return false, err
	}
	err = s.OriginNotes(ctx, decorum.Origin{}, func(string, []byte) bool {
		empty = false
		return false
	})
	return empty, err
}
