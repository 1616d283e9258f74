-- A database of about 75 MB in memory: filled, indexed, updated, joined, checked, summed up.
pragma page_size = 4096;
create table item(id integer primary key, name text, grp integer, amount integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into item select i, printf('item-%08d', (i * 7919) % 1000003), (i * 31) % 997, (i * 104729) % 10007,
                        printf('%.*c%d', 60 + i % 90, 'x', i) from n;
create index by_name on item(name);
create index by_group on item(grp, amount);
select count(*), sum(amount), sum(length(note)) from item;
update item set amount = amount + 1, note = note || 'y' where grp % 5 = 0;
delete from item where id % 11 = 0;
select grp, count(*), sum(amount), max(name) from item group by grp order by sum(amount) desc limit 12;
select a.id, b.id from item a join item b on a.name = b.name and a.id < b.id where a.id < 4000 order by 1 limit 5;
select id, name from item where name between 'item-00500000' and 'item-00500100' order by name;
pragma quick_check;
select sum(id * (unicode(substr(note, length(note))) + length(note))) from item;
