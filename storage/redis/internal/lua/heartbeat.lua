-- heartbeat(clock, worker, expiresAfter, joining, leaving, resetIfReached, maxPages, maxBytes,
-- maxTime, wanted, visited, received, seq) → sum, and a line of numbers: workers, pages granted,
-- and 1 each if the limit of pages, bytes, time is reached; or 'gone' if the worker was not
-- heard of for so long that it was taken for dead. Numbers of a worker are of all its
-- time, so that to call again changes nothing. A report that was overtaken by one with a
-- higher number changes nothing either: it would take permits back that are in use.
local totals, worker, expiresAfter = loadHash('u'), ARGV[2], tonumber(ARGV[3])
local joining, leaving, resetIfReached = ARGV[4] == '1', ARGV[5] == '1', ARGV[6] == '1'
local maxPages, maxBytes, maxTime = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

-- removeWorker forgets a worker. Permits that it held count as used, if it cannot say.
local function removeWorker(name, dead)
  local status = loadHash('w:' .. name)
  local unused = getNumber(status, 'p') - getNumber(status, 'u')
  addToField(totals, 'out', -unused)
  if dead then addToField(totals, 'pages', unused) end
  call('DEL', status.key)
  call('ZREM', keyPrefix .. 'w', name)
  hashes['w:' .. name] = nil
end

local function isReached(limit, field) return limit > 0 and getNumber(totals, field) >= limit and 1 or 0 end

for _, name in ipairs(call('ZRANGEBYSCORE', keyPrefix .. 'w', '-inf', now - expiresAfter, 'LIMIT', 0, 50)) do
  removeWorker(name, true)
end
if not joining and not call('ZSCORE', keyPrefix .. 'w', worker) then return {saveChanges(), 'gone'} end

local status = loadHash('w:' .. worker)

-- grantPages sets how many pages the worker is permitted. Of what is left nobody gets more than
-- a part at a time, so that some is for all.
local function grantPages(wanted, visited)
  local extra = wanted - getNumber(status, 'p')
  if maxPages > 0 then extra = math.min(extra, math.max(0, math.ceil((maxPages - getNumber(totals, 'pages') - getNumber(totals, 'out')) / 4))) end
  wanted = math.max(getNumber(status, 'p') + extra, visited)
  addToField(totals, 'out', wanted - getNumber(status, 'p'))
  setField(status, 'p', wanted)
end

-- applyStatus takes the report.
local function applyStatus(wanted, visited, received, seq)
  if resetIfReached and isReached(maxPages, 'pages') + isReached(maxBytes, 'bytes') + isReached(maxTime, 'time') > 0 then
    setField(totals, 'pages', 0)
    setField(totals, 'bytes', 0)
    setField(totals, 'time', 0)
  end
  if now - getNumber(totals, 'last') < expiresAfter then addToField(totals, 'time', now - getNumber(totals, 'last')) end
  setField(totals, 'last', now)
  setField(status, 'i', seq)
  addToField(totals, 'pages', visited - getNumber(status, 'u'))
  addToField(totals, 'out', getNumber(status, 'u') - visited)
  setField(status, 'u', visited)
  addToField(totals, 'bytes', received - getNumber(status, 'b'))
  setField(status, 'b', received)
  grantPages(wanted, visited)
  call('ZADD', keyPrefix .. 'w', now, worker)
  if leaving then removeWorker(worker, false) end
end

local seq = tonumber(ARGV[13])
if seq >= getNumber(status, 'i') then applyStatus(tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), seq) end
return {saveChanges(), table.concat({call('ZCARD', keyPrefix .. 'w'), getNumber(status, 'p'), isReached(maxPages, 'pages'), isReached(maxBytes, 'bytes'),
  isReached(maxTime, 'time')}, ' ')}
