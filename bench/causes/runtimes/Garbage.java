import java.util.*;
public class Garbage { public static void main(String[] a) { long t=0; int n = a.length>0?Integer.parseInt(a[0]):400;
 for (int r=0;r<n;r++){ List<byte[]> l=new ArrayList<>(); for(int i=0;i<1000;i++){ byte[] b=new byte[8192]; b[0]=1; l.add(b);} t+=l.size(); } System.out.println(t);} }
