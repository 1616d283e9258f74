type tree = Leaf | Node of tree * int * tree

let rec build depth = if depth = 0 then Leaf else Node (build (depth - 1), depth, build (depth - 1))
let rec count = function Leaf -> 0 | Node (l, _, r) -> 1 + count l + count r

let () =
  let total = ref 0 in
  (match Sys.argv.(1) with
   | "churn" -> for _ = 1 to 40 do total := !total + count (build 16) done
   | "large" ->
     for i = 1 to 20 do
       let b = Bytes.make (40 * 1024 * 1024) 'x' in
       total := !total + Char.code (Bytes.get b i);
       Gc.full_major ()
     done
   | "touch" ->
     let kept = Array.init 80_000 (fun i -> Bytes.make 2000 (Char.chr (i land 63))) in
     total := Array.length kept
   | _ ->
     let table = Array.init 1000 (fun i -> i) in
     for i = 1 to 150_000_000 do total := !total + table.(i mod 1000) done);
  print_int !total;
  print_newline ()
