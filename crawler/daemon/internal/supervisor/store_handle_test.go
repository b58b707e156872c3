package supervisor

import (
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A slowStore closes when the channel closing is closed.
type slowStore struct {
	*memory.Store
	closing chan struct{}
}

func (s slowStore) Close() error {
	<-s.closing
	return s.Store.Close()
}

// While a storeHandle closes its stores, which can wait for servers, its stats stay readable. A call of
// acquire waits, and then opens the stores again.
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
			t.Error("needsReopen reports a change of the stores, and there was none")
		}
		go acquireStore()
		synctest.Wait()
		if opened != 1 {
			t.Errorf("the stores were opened %d times before they were closed, want once", opened)
		}
		close(closing)
		synctest.Wait()
		if opened != 2 {
			t.Errorf("the stores were opened %d times, want once more after they were closed", opened)
		}
		v.release()
		if err := v.closeForGood(); err != nil {
			t.Error(err)
		}
	})
}
