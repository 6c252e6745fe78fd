"""The rules of docs/labels.md once more, as plain SQL for DuckDB: nothing here is ranklake's.

Times are microseconds since 1970, so that no time zone has a part in it. Parameters:
$win, $tol, $age, $conv (microseconds; -1: none), $known (microseconds; -1: all), $reject, $touch,
$key (the other column beside user_id).
"""

_MATCHED = """
with imp as (
  select * from impressions
  where query_id <> '' and item_id <> ''
), ids as (
  select impression_id, query_id, item_id, shown from (
    select impression_id, query_id, item_id, min(event_us) as shown,
      row_number() over (
        partition by impression_id order by min(event_us) nulls last, query_id, item_id) as nth
    from imp where impression_id <> '' group by 1, 2, 3)
  where nth = 1
), items as (
  select query_id, item_id, min(event_us) as shown from imp group by 1, 2
), asked as (select distinct query_id from imp
"""

_OF_EVENT = """
), {name}_named as (
  select e.*, coalesce(e.impression_id <> '', false) as by_id from {table} e
  where coalesce(e.impression_id <> '', false)
     or (coalesce(e.query_id <> '', false) and coalesce(e.item_id <> '', false))
), {name}_matched as (
  select n.* exclude (query_id, item_id),
    n.query_id as own_query, n.item_id as own_item,
    coalesce(ids.query_id, n.query_id) as query_id, coalesce(ids.item_id, n.item_id) as item_id,
    case when by_id then ids.shown else items.shown end as shown,
    case when by_id then ids.impression_id is not null
      else items.query_id is not null end as is_shown
  from {name}_named n
  left join ids on by_id and n.impression_id = ids.impression_id
  left join items on not by_id and n.query_id = items.query_id and n.item_id = items.item_id
"""

_CLICKS = """
), click_reasons as (
  select m.*, case
    when not is_shown and (by_id or m.query_id not in (select query_id from asked)) then 'orphan'
    when not is_shown and $reject then 'unshown'
    when $known >= 0 and ingest_us > $known then 'late'
    when $win >= 0 and at_us < shown - $tol then 'before'
    when $win >= 0 and at_us > shown + $win then 'after'
    when $age >= 0 and at_us > shown + $age then 'too_old'
    end as reason
  from click_matched m
), click_told as (
  select * replace (case
    when reason is null and row_number() over (
      partition by query_id, item_id, reason
      order by at_us nulls last, ingest_us nulls first, impression_id nulls first) > 1
    then 'repeated' else reason end as reason)
  from click_reasons
"""

_CONVERSIONS = """
), copies as (
  select *, row_number() over (
    partition by nullif(conversion_id, ''),
      case when coalesce(conversion_id, '') = '' then coalesce(query_id, '~') end,
      case when coalesce(conversion_id, '') = '' then coalesce(item_id, '~') end,
      case when coalesce(conversion_id, '') = '' then coalesce(impression_id, '~') end,
      case when coalesce(conversion_id, '') = '' then coalesce(at_us, -1) end,
      case when coalesce(conversion_id, '') = '' then coalesce(worth, -1) end
    order by ingest_us nulls first) as nth
  from usable
), touched as (
  select c.rowid_, count(k.query_id) as n_clicks,
    count(*) filter (k.query_id is not null and k.at_us is null) as n_undated,
    max(k.at_us) filter (k.at_us <= c.at_us) as last_us, min(k.at_us) as first_us
  from conversion_matched c
  left join click_told k
    on k.query_id = c.query_id and k.item_id = c.item_id
    and coalesce(k.reason, 'repeated') = 'repeated'
  group by 1
), told as (
  select m.*, t.* exclude (rowid_), copies.nth,
    case $touch when 'last_click' then last_us
      when 'first_click' then first_us else shown end as touch
  from conversion_matched m join touched t using (rowid_) join copies using (rowid_)
)
select own_query, own_item, impression_id, at_us, ingest_us, worth,
  nullif(conversion_id, '') as conversion_id, case
  when nth > 1 then 'redelivered'
  when $known >= 0 and ingest_us > $known then 'late'
  when not is_shown and (by_id or query_id not in (select query_id from asked)) then 'orphan'
  when not is_shown and $reject then 'unshown'
  when $touch <> 'last_impression' and n_clicks = 0 then 'unclicked'
  when at_us is null then null
  when $touch = 'last_impression' and at_us < touch then 'before'
  when $touch <> 'last_impression' and n_undated = 0
    and (touch is null or at_us < touch) then 'before'
  when $conv >= 0 and at_us > touch + $conv then 'after'
  when $age >= 0 and at_us > shown + $age then 'too_old'
  end as reason
from told
"""

_BEGIN_CONVERSIONS = """
), usable as (select * from conversions where coalesce(impression_id <> '', false)
     or (coalesce(query_id <> '', false) and coalesce(item_id <> '', false))
"""

CLICKS = f"""
{_MATCHED}{_OF_EVENT.format(name="click", table="clicks")}{_CLICKS})
select own_query, own_item, impression_id, at_us, ingest_us, reason from click_told
"""
"""One row per usable click, with its reason."""

CONVERSIONS = (
    _MATCHED
    + _OF_EVENT.format(name="click", table="clicks")
    + _CLICKS
    + _BEGIN_CONVERSIONS
    + _OF_EVENT.format(name="conversion", table="conversions")
    + _CONVERSIONS
)
"""One row per usable conversion, with its reason."""

ATTRIBUTED = (
    _MATCHED
    + _OF_EVENT.format(name="click", table="clicks")
    + _CLICKS
    + """
), touches as (
  select user_id, case $key when 'item_id' then item_id else advertiser_id end as other,
    query_id, item_id, at_us as touched, shown, event_date
  from click_told
  where $touch <> 'last_impression' and coalesce(reason, 'repeated') = 'repeated'
  union all
  select user_id, case $key when 'item_id' then item_id else advertiser_id end as other,
    query_id, item_id, min(event_us), min(event_us), event_date
  from imp where $touch = 'last_impression' group by all
), usable as (
  select *, case $key when 'item_id' then item_id else advertiser_id end as other,
    row_number() over (
      partition by coalesce(conversion_id, ''),
        case when coalesce(conversion_id, '') = '' then
          (event_date, user_id, item_id, advertiser_id, at_us, worth) end
      order by ingest_us nulls first) as nth
  from conversions
  where user_id <> '' and other <> '' and at_us is not null
), pairs as (
  select c.rowid_, t.query_id, t.item_id, t.touched, t.shown, t.event_date as touch_date,
    row_number() over (
      partition by c.rowid_
      order by case when $touch = 'first_click' then t.touched else -t.touched end,
        case when $touch = 'first_click' then t.query_id end,
        case when $touch = 'first_click' then t.item_id end,
        t.query_id desc, t.item_id desc) as best
  from usable c join touches t on c.user_id = t.user_id and c.other = t.other
    and t.touched <= c.at_us and ($conv < 0 or c.at_us <= t.touched + $conv)
)
select c.conversion_id, c.user_id, c.other, c.at_us, c.ingest_us, c.worth,
  p.query_id, p.item_id, p.touch_date, case
  when nth > 1 then 'redelivered'
  when $known >= 0 and ingest_us > $known then 'late'
  when p.query_id is null then 'without_touch'
  when $age >= 0 and c.at_us > p.shown + $age then 'too_old'
  end as reason, c.event_date
from usable c left join pairs p on p.rowid_ = c.rowid_ and p.best = 1
"""
)
"""One row per conversion that has its keys: its touch, of any day, and the reason."""
