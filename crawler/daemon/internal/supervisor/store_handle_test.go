package supervisor

import (
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A slowStore takes its time to close.
type slowStore struct {
	*memory.Store
	closing chan struct{}
}

func (s slowStore) Close() error {
	<-s.closing
	return s.Store.Close()
}

// While a vault is being closed, which waits for servers that may be silent, it tells what
// was in it; who enters waits, and finds it open.
func TestStoreHandleAnswersWhileItCloses(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		opened := 0
		v := newStoreHandle(dir, func() string { return "" }, func() (datadir.CrawlStores, error) {
			opened++
			return datadir.CrawlStores{Frontier: slowStore{memory.New(memory.Config{}), closing}}, nil
		}, func() {})
		acquireStore := func() {
			if _, err := v.acquire(); err != nil {
				t.Error(err)
			}
		}
		acquireStore()
		v.release()
		go func() {
			if err := v.closeIfUnused(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		v.lastKnownStats()
		if v.needsReopen() {
			t.Error("its place has not changed")
		}
		go acquireStore()
		synctest.Wait()
		if opened != 1 {
			t.Errorf("it was opened %d times before it was closed", opened)
		}
		close(closing)
		synctest.Wait()
		if opened != 2 {
			t.Errorf("it was opened %d times, want once more when it was closed", opened)
		}
		v.release()
		if err := v.closeForGood(); err != nil {
			t.Error(err)
		}
	})
}
